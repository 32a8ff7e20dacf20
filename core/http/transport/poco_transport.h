// Poco's own HTTP server as the transport: a thread for each connection.
#pragma once

#include <memory>

#include "core/config/server_config.h"
#include "core/http/transport/server.h"

namespace jobq {

class RequestHandlerFactory;

/// Returns a transport with Poco's server, bound to the address. `handlers` outlives the transport. Throws ConfigError
/// as HttpServer::open() does.
std::unique_ptr<ServerTransport> pocoTransport(const ServerConfig& config, RequestHandlerFactory& handlers);

}  // namespace jobq

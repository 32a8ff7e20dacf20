// The part of the server that serves the connections of a socket: the own transport, or Poco's server.
#pragma once

#include <Poco/Net/ServerSocket.h>

#include <memory>

#include "core/config/server_config.h"
#include "jobq/time.h"

namespace jobq {

class RequestHandlerFactory;
class TlsContext;

/// The part that serves the connections of a bound socket. One thread at a time.
class ServerTransport {
 public:
  virtual ~ServerTransport() = default;

  /// Accepts connections. The socket listens. Throws Error if the system gives no descriptors.
  virtual void start() = 0;
  /// Lets every later answer end its connection.
  virtual void announceClose() = 0;
  /// Closes the listener, waits for requests in flight, and ends all connections and threads. Returns false if some
  /// requests were cut off after `grace`, or later.
  virtual bool stop(Millis grace) = 0;
};

/// Returns Poco's own server, with a thread for each connection. `tls` may be null. All arguments outlive the
/// transport.
std::unique_ptr<ServerTransport> pocoTransport(const ServerConfig& config, const Poco::Net::ServerSocket& socket,
                                               TlsContext* tls, RequestHandlerFactory& handlers);

}  // namespace jobq

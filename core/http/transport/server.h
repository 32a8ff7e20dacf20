// The HTTP server as a service: TLS, the listening socket, and a transport, which is the reactor of connections or
// Poco's own server.
#pragma once

#include <Poco/Net/ServerSocket.h>

#include <memory>
#include <string>

#include "core/base/service.h"
#include "core/config/server_config.h"
#include "core/http/transport/budget.h"
#include "jobq/log.h"
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

/// The functions are not synchronised: one thread at a time calls them. `handlers` is called on the server's own
/// threads.
class HttpServer final : public Service {
 public:
  /// `handlers` answer the requests; `waiting` has the places for slow bodies. All references outlive the server.
  HttpServer(const ServerConfig& config, RequestHandlerFactory& handlers, Budget& waiting, Log& log);
  ~HttpServer() override;

  /// Binds the address without accepting connections, so that a start can end before any work begins. Throws
  /// ConfigError if the address is taken or is not of this machine, or if a TLS file is no certificate or key.
  void open();

  /// Accepts connections, after open() if open() was not called. Does nothing if
  /// connections are accepted already. Throws ConfigError, as open() does, and Error if the system gives no
  /// descriptors; the address is free again then.
  void start() override;

  /// Reads the certificate and the key again, for later connections. Files that are no certificate and key change
  /// nothing; the log says why.
  void reloadCertificate();

  /// Lets every later answer say `Connection: close`, before a stop. The listener stays open.
  void announceClose();

  /// Closes the listener and the idle connections, waits up to `grace` and a second for requests in flight,
  /// and up to 10 s longer while each second answers some of them. Closes their connections, and joins the threads.
  /// Suspended calls may still be resumed, without an effect, until the server is destroyed or opened again.
  void stop(Millis grace);
  void stop() override { stop(Millis(0)); }

  /// Returns the address with the bound port, such as "http://127.0.0.1:8000"; empty before open().
  std::string address() const;

 private:
  struct Running;
  const ServerConfig config_;
  RequestHandlerFactory& handlers_;
  Budget& waiting_;
  Log& log_;
  std::unique_ptr<Running> running_;
};

}  // namespace jobq

// The front door as a service: budgets, TLS, the listening socket, and the porch behind it.
#pragma once

#include <memory>
#include <string>

#include "core/base/service.h"
#include "core/config/config.h"
#include "core/http/transport/budget.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq {

class RequestPipeline;

class HttpServer final : public Service {
 public:
  /// `waiting`: places for calls that hold a thread while they wait for something.
  HttpServer(const ServerConfig& config, RequestPipeline& pipeline, Budget& waiting, Log& log);
  ~HttpServer() override;

  /// Throws ConfigError when the address is taken or not this machine's, or the certificate is none.
  void start() override;

  /// Reads the certificate and its key again, for connections that come from now on. If they are none the old ones stay
  /// in use, and the log says why.
  void reloadCertificate();

  /// The server is about to stop: every answer says `Connection: close` from now on. The door stays open.
  void announceClose();

  /// The listener closes first, idle connections are shut, requests in flight get up to `grace` to end; then their
  /// connections are shut, and the threads joined.
  void stop(Millis grace);
  void stop() override { stop(Millis(0)); }

  /// "http://127.0.0.1:8000", with the port that was really bound.
  std::string address() const;

 private:
  struct Running;
  const ServerConfig config_;
  RequestPipeline& pipeline_;
  Budget& waiting_;
  Log& log_;
  std::unique_ptr<Running> running_;
};

}  // namespace jobq

// The listener. Poco's own HTTPServer, for now; everything above knows only Poco's request and response interfaces.
#pragma once

#include <memory>
#include <string>

#include "core/base/service.h"
#include "core/config/config.h"

namespace jobq {

class Gate;

class HttpServer final : public Service {
 public:
  HttpServer(const ServerConfig& config, Gate& gate, Log& log);
  ~HttpServer() override;

  /// Throws ConfigError when the address is taken or not this machine's.
  void start() override;

  /// The listener closes first, requests in flight get 5 s, then their connections are shut.
  void stop() override;

  /// "http://127.0.0.1:8000", with the port that was really bound.
  std::string address() const;

 private:
  struct Poco;
  const ServerConfig config_;
  Gate& gate_;
  Log& log_;
  std::unique_ptr<Poco> poco_;
};

}  // namespace jobq

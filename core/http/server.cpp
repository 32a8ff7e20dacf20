#include "core/http/server.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/ServerSocket.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/http/gate.h"
#include "core/http/link.h"
#include "core/http/porch.h"

namespace jobq {
namespace {

constexpr int kBacklog = 4096;

Poco::Net::ServerSocket listenAt(const std::string& host, std::uint16_t port) {
  const std::string where = host + ":" + std::to_string(port);
  try {
    // Not the constructor that binds: it sets SO_REUSEPORT, and a second server would share the port without a word.
    Poco::Net::ServerSocket socket;
    socket.bind(Poco::Net::SocketAddress(host, port), true, false);
    socket.listen(kBacklog);
    return socket;
  } catch (const Poco::Exception& error) {
    throw ConfigError("server.host and server.port: cannot listen on " + where + ": " + error.displayText());
  }
}

// The porch's own copy, so that nobody else can close it.
int ownDescriptor(const Poco::Net::ServerSocket& socket) {
  const int descriptor = ::fcntl(socket.impl()->sockfd(), F_DUPFD_CLOEXEC, 3);
  if (descriptor < 0) throw ConfigError("the system gives no descriptor for the listening socket: raise ulimit -n");
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  return descriptor;
}

std::unique_ptr<TlsContext> tlsOf(const ServerConfig& config) {
  if (config.tlsCertificate.empty()) return nullptr;
  return std::make_unique<TlsContext>(config.tlsCertificate.string(), config.tlsKey.string());
}

}  // namespace

struct HttpServer::Parts {
  class Handler final : public Poco::Net::HTTPRequestHandler {
   public:
    Handler(Gate& gate, Gate::Visit visit) : gate_(gate), visit_(std::move(visit)) {}

    void handleRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) override {
      gate_.serve(std::move(visit_), request, response);
    }

   private:
    Gate& gate_;
    Gate::Visit visit_;
  };

  class Factory final : public Poco::Net::HTTPRequestHandlerFactory {
   public:
    explicit Factory(Gate& gate) : gate_(gate) {}

    Poco::Net::HTTPRequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest& request) override {
      return new Handler(gate_, gate_.enter(request));
    }

   private:
    Gate& gate_;
  };

  Parts(const ServerConfig& config, Gate& gate, Budget& waiting, Log& log)
      : factory(gate),
        tls(tlsOf(config)),
        socket(listenAt(config.host, config.port)),
        address(std::string(tls ? "https://" : "http://") + socket.address().toString()),
        porch(ownDescriptor(socket),
              {static_cast<std::size_t>(config.threads), config.keepAlive, config.connectionsPerAddress, tls.get(),
               factory, *params, waiting},
              log) {
    socket.close();
  }

  Factory factory;
  Poco::Net::HTTPServerParams::Ptr params = new Poco::Net::HTTPServerParams;
  std::unique_ptr<TlsContext> tls;
  Poco::Net::ServerSocket socket;
  const std::string address;
  Porch porch;
};

HttpServer::HttpServer(const ServerConfig& config, Gate& gate, Budget& waiting, Log& log)
    : config_(config), gate_(gate), waiting_(waiting), log_(log) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::start() {
  if (parts_) return;
  auto parts = std::make_unique<Parts>(config_, gate_, waiting_, log_);
  parts->porch.start();
  parts_ = std::move(parts);
  log_.write(LogLevel::information, "http.listening", address());
}

void HttpServer::reloadCertificate() {
  if (!parts_ || !parts_->tls) return;
  try {
    parts_->tls->reload();
    log_.write(LogLevel::information, "http.certificate", "new connections are given the certificate as it is now");
  } catch (const ConfigError& error) {
    log_.write(LogLevel::error, "http.certificate", std::string("the old certificate stays in use: ") + error.what());
  }
}

void HttpServer::sayGoodbye() {
  if (parts_) parts_->porch.sayGoodbye();
}

void HttpServer::stop(Millis grace) {
  if (!parts_) return;
  parts_->porch.drain();
  if (!parts_->porch.awaitQuiet(grace)) {
    log_.write(LogLevel::information, "http.cut", "requests that did not end within server.drain are cut off");
  }
  parts_->porch.stop();
  parts_.reset();
}

std::string HttpServer::address() const { return parts_ ? parts_->address : std::string(); }

}  // namespace jobq

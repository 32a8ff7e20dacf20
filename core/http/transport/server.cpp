#include "core/http/transport/server.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/ServerSocket.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/http/api/request_pipeline.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/connection_reactor.h"

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

struct HttpServer::Running {
  class Handler final : public Poco::Net::HTTPRequestHandler {
   public:
    Handler(RequestPipeline& pipeline, RequestPipeline::RequestContext context)
        : pipeline_(pipeline), context_(std::move(context)) {}

    void handleRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) override {
      pipeline_.serve(std::move(context_), request, response);
    }

   private:
    RequestPipeline& pipeline_;
    RequestPipeline::RequestContext context_;
  };

  class Factory final : public Poco::Net::HTTPRequestHandlerFactory {
   public:
    explicit Factory(RequestPipeline& pipeline) : pipeline_(pipeline) {}

    Poco::Net::HTTPRequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest& request) override {
      return new Handler(pipeline_, pipeline_.judgeHead(request));
    }

   private:
    RequestPipeline& pipeline_;
  };

  Running(const ServerConfig& config, RequestPipeline& pipeline, Budget& waiting, Log& log)
      : factory(pipeline),
        tls(tlsOf(config)),
        socket(listenAt(config.host, config.port)),
        address(std::string(tls ? "https://" : "http://") + socket.address().toString()),
        reactor(ownDescriptor(socket),
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
  ConnectionReactor reactor;
};

HttpServer::HttpServer(const ServerConfig& config, RequestPipeline& pipeline, Budget& waiting, Log& log)
    : config_(config), pipeline_(pipeline), waiting_(waiting), log_(log) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::start() {
  if (running_) return;
  auto running = std::make_unique<Running>(config_, pipeline_, waiting_, log_);
  running->reactor.start();
  running_ = std::move(running);
  log_.write(LogLevel::information, "http.listening", address());
}

void HttpServer::reloadCertificate() {
  if (!running_ || !running_->tls) return;
  try {
    running_->tls->reload();
    log_.write(LogLevel::information, "http.certificate", "new connections are given the certificate as it is now");
  } catch (const ConfigError& error) {
    log_.write(LogLevel::error, "http.certificate", std::string("the old certificate stays in use: ") + error.what());
  }
}

void HttpServer::announceClose() {
  if (running_) running_->reactor.announceClose();
}

void HttpServer::stop(Millis grace) {
  if (!running_) return;
  running_->reactor.drain();
  if (!running_->reactor.awaitQuiet(grace)) {
    log_.write(LogLevel::information, "http.cut", "requests that did not end within server.drain are cut off");
  }
  running_->reactor.stop();
  running_.reset();
}

std::string HttpServer::address() const { return running_ ? running_->address : std::string(); }

}  // namespace jobq

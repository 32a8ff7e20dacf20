#include "core/http/transport/server.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPServerParams.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/http/transport/byte_stream.h"
#include "core/http/transport/connection_reactor.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr int kBacklog = 4096;

// Times of a stop that still answers callers behind its grace.
constexpr Millis kAnswerMoment{1'000};
constexpr Millis kLastAnswers{10'000};

Poco::Net::ServerSocket bindTo(const std::string& host, std::uint16_t port) {
  const std::string where = host + ":" + std::to_string(port);
  try {
    // The binding constructor would set SO_REUSEPORT, and a second server would share the port silently.
    Poco::Net::ServerSocket socket;
    socket.bind(Poco::Net::SocketAddress(host, port), true, false);
    return socket;
  } catch (const Poco::Exception& error) {
    throw ConfigError("server.host and server.port: cannot listen on " + where + ": " + error.displayText());
  }
}

// Returns a copy of the descriptor for the reactor alone.
int ownDescriptor(const Poco::Net::ServerSocket& socket) {
  const int descriptor = ::fcntl(socket.impl()->sockfd(), F_DUPFD_CLOEXEC, 3);
  if (descriptor < 0) throw ConfigError("the system gives no descriptor for the listening socket: raise ulimit -n");
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  return descriptor;
}

HttpThreadPool::Size poolSize(const ServerConfig& config) {
  const auto most = static_cast<std::size_t>(config.threads);
  return {most, std::min<std::size_t>(most, keptThreads())};
}

std::unique_ptr<TlsContext> tlsOf(const ServerConfig& config) {
  if (config.tlsCertificate.empty()) return nullptr;
  return std::make_unique<TlsContext>(config.tlsCertificate.string(), config.tlsKey.string());
}

// Waits for the open requests for `grace` and a moment, and longer while each moment answers some of them. Returns
// false if some are left.
bool awaitAnswers(ConnectionReactor& reactor, Millis grace) {
  const auto latest = std::chrono::steady_clock::now() + grace + kLastAnswers;
  bool isQuiet = reactor.awaitQuiet(grace);
  std::size_t open = SIZE_MAX;
  while (!isQuiet && std::chrono::steady_clock::now() < latest) {
    const std::size_t left = reactor.openRequests();
    if (left == 0 || left >= open) break;
    open = left;
    isQuiet = reactor.awaitQuiet(kAnswerMoment);
  }
  return isQuiet || reactor.openRequests() == 0;
}

/// The own transport: the reactor of connections, with a pool of threads.
class ReactorTransport final : public ServerTransport {
 public:
  ReactorTransport(const Poco::Net::ServerSocket& socket, const ConnectionReactor::Rules& rules, Log& log)
      : socket_(socket), reactor_(ownDescriptor(socket), rules, log) {}

  void start() override {
    socket_.close();  // the reactor has a descriptor of its own
    reactor_.start();
  }
  void announceClose() override { reactor_.announceClose(); }
  bool stop(Millis grace) override {
    reactor_.drain();
    const bool isQuiet = awaitAnswers(reactor_, grace);
    reactor_.stop();
    return isQuiet;
  }

 private:
  Poco::Net::ServerSocket socket_;
  ConnectionReactor reactor_;
};

}  // namespace

struct HttpServer::Running {
  Running(const ServerConfig& config, RequestHandlerFactory& handlers, Budget& waiting, Log& log)
      : tls(tlsOf(config)),
        socket(bindTo(config.host, config.port)),
        address(std::string(tls ? "https://" : "http://") + socket.address().toString()) {
    if (config.transport == TransportKind::poco) {
      transport = pocoTransport(config, socket, tls.get(), handlers);
    } else {
      const ConnectionReactor::Rules rules{
          poolSize(config), config.keepAlive, config.connectionsPerAddress, tls.get(), handlers, *params, waiting};
      transport = std::make_unique<ReactorTransport>(socket, rules, log);
    }
  }

  void start() {
    try {
      socket.listen(kBacklog);
    } catch (const Poco::Exception& error) {  // another server bound the address in the same moment
      throw ConfigError("server.host and server.port: cannot listen on " + address + ": " + error.displayText());
    }
    transport->start();
    isListening = true;
  }

  Poco::Net::HTTPServerParams::Ptr params = new Poco::Net::HTTPServerParams;
  std::unique_ptr<TlsContext> tls;
  Poco::Net::ServerSocket socket;
  const std::string address;
  bool isListening = false;
  bool hasEnded = false;
  std::unique_ptr<ServerTransport> transport;
};

HttpServer::HttpServer(const ServerConfig& config, RequestHandlerFactory& handlers, Budget& waiting, Log& log)
    : config_(config), handlers_(handlers), waiting_(waiting), log_(log) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::open() {
  if (running_ && running_->hasEnded) running_.reset();
  if (!running_) running_ = std::make_unique<Running>(config_, handlers_, waiting_, log_);
}

void HttpServer::start() {
  open();
  if (running_->isListening) return;
  try {
    running_->start();
  } catch (...) {
    running_.reset();  // the address is free again, and a later start() binds it anew
    throw;
  }
  log_.write(LogLevel::information, "http.listening", address());
}

void HttpServer::reloadCertificate() {
  if (!running_ || !running_->tls) return;
  try {
    running_->tls->reload();
    log_.write(LogLevel::information, "http.certificate", "new connections use the certificate that was just read");
  } catch (const ConfigError& error) {
    log_.write(LogLevel::error, "http.certificate", std::string("the old certificate stays in use: ") + error.what());
  }
}

void HttpServer::announceClose() {
  if (running_) running_->transport->announceClose();
}

void HttpServer::stop(Millis grace) {
  if (!running_ || std::exchange(running_->hasEnded, true)) return;
  if (!running_->transport->stop(grace)) {
    log_.write(LogLevel::information, "http.cut", "requests that did not end within server.drain are cut off");
  }
}

std::string HttpServer::address() const { return running_ && !running_->hasEnded ? running_->address : std::string(); }

}  // namespace jobq

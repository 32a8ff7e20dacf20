#include "core/http/transport/server.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/ServerSocket.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/http/transport/byte_stream.h"
#include "core/http/transport/connection_reactor.h"
#include "core/http/transport/poco_transport.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr int kBacklog = 4096;

// Times of a stop that still answers callers behind its grace.
constexpr Millis kAnswerMoment{1'000};
constexpr Millis kLastAnswers{10'000};

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
  ReactorTransport(const ServerConfig& config, RequestHandlerFactory& handlers, Budget& waiting, Log& log)
      : tls_(tlsOf(config)),
        socket_(bindServer(config, Poco::Net::ServerSocket())),
        address_(std::string(tls_ ? "https://" : "http://") + socket_.address().toString()),
        reactor_(
            ownDescriptor(socket_),
            {poolSize(config), config.keepAlive, config.connectionsPerAddress, tls_.get(), handlers, *params_, waiting},
            log) {}

  void start() override {
    listenAt(socket_, address_);
    socket_.close();  // the reactor has a descriptor of its own
    reactor_.start();
  }
  bool hasCertificate() const noexcept override { return tls_ != nullptr; }
  void reloadCertificate() override { tls_->reload(); }
  void announceClose() override { reactor_.announceClose(); }
  bool stop(Millis grace) override {
    reactor_.drain();
    const bool isQuiet = awaitAnswers(reactor_, grace);
    reactor_.stop();
    return isQuiet;
  }
  const std::string& address() const noexcept override { return address_; }

 private:
  Poco::Net::HTTPServerParams::Ptr params_ = new Poco::Net::HTTPServerParams;
  const std::unique_ptr<TlsContext> tls_;
  Poco::Net::ServerSocket socket_;
  const std::string address_;
  ConnectionReactor reactor_;
};

}  // namespace

Poco::Net::ServerSocket bindServer(const ServerConfig& config, Poco::Net::ServerSocket socket) {
  const std::string where = config.host + ":" + std::to_string(config.port);
  try {
    // The binding constructor would set SO_REUSEPORT, and a second server would share the port silently.
    socket.bind(Poco::Net::SocketAddress(config.host, config.port), true, false);
    return socket;
  } catch (const Poco::Exception& error) {
    throw ConfigError("server.host and server.port: cannot listen on " + where + ": " + error.displayText());
  }
}

void listenAt(Poco::Net::ServerSocket& socket, const std::string& address) {
  try {
    socket.listen(kBacklog);
  } catch (const Poco::Exception& error) {
    throw ConfigError("server.host and server.port: cannot listen on " + address + ": " + error.displayText());
  }
}

HttpServer::HttpServer(const ServerConfig& config, RequestHandlerFactory& handlers, Budget& waiting, Log& log)
    : config_(config), handlers_(handlers), waiting_(waiting), log_(log) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::open() {
  if (std::exchange(hasEnded_, false)) transport_.reset();
  if (transport_) return;
  isListening_ = false;
  if (config_.transport == TransportKind::poco) {
    transport_ = pocoTransport(config_, handlers_);
  } else {
    transport_ = std::make_unique<ReactorTransport>(config_, handlers_, waiting_, log_);
  }
}

void HttpServer::start() {
  open();
  if (isListening_) return;
  try {
    transport_->start();
    isListening_ = true;
  } catch (...) {
    transport_.reset();  // the address is free again, and a later start() binds it anew
    throw;
  }
  log_.write(LogLevel::information, "http.listening", address());
}

void HttpServer::reloadCertificate() {
  if (!transport_ || !transport_->hasCertificate()) return;
  try {
    transport_->reloadCertificate();
    log_.write(LogLevel::information, "http.certificate", "new connections use the certificate that was just read");
  } catch (const ConfigError& error) {
    log_.write(LogLevel::error, "http.certificate", std::string("the old certificate stays in use: ") + error.what());
  }
}

void HttpServer::announceClose() {
  if (transport_) transport_->announceClose();
}

void HttpServer::stop(Millis grace) {
  if (!transport_ || std::exchange(hasEnded_, true)) return;
  if (!transport_->stop(grace)) {
    log_.write(LogLevel::information, "http.cut", "requests that did not end within server.drain are cut off");
  }
}

std::string HttpServer::address() const { return transport_ && !hasEnded_ ? transport_->address() : std::string(); }

}  // namespace jobq

#include "core/http/transport/poco_transport.h"

#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/SecureServerSocket.h>
#include <Poco/ThreadPool.h>

#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "core/http/transport/blocking_request.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/request_handler.h"
#include "core/http/transport/request_head.h"
#include "jobq/error.h"
#include "jobq/mutex.h"

namespace jobq {
namespace {

using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

/// Longest wait of a read, a write, or for the first request of a connection.
constexpr int kTimeoutSeconds = 20;
/// Threads beyond server.threads. They answer 503, so that a caller learns of the crowd.
constexpr int kRefusingThreads = 16;
constexpr const char* kTooMany =
    "all threads have a connection (server.threads): try again in a moment, or raise server.threads";

/// The requests without an answer yet. Any thread.
class OpenRequests {
 public:
  void enter() {
    Lock lock(mutex_);
    ++open_;
  }
  void leave() noexcept {
    Lock lock(mutex_);
    if (--open_ == 0) none_.notifyAll();
  }
  /// Waits for the end of all requests, at most for `atMost`. Returns false if some are left.
  bool awaitNone(Millis atMost) {
    Lock lock(mutex_);
    const auto end = std::chrono::steady_clock::now() + atMost;
    while (open_ > 0 && std::chrono::steady_clock::now() < end) {
      none_.waitFor(mutex_, end - std::chrono::steady_clock::now());
    }
    return open_ == 0;
  }

 private:
  Mutex mutex_;
  Condition none_;
  int open_ JOBQ_GUARDED_BY(mutex_) = 0;
};

/// The state that requests share with the transport.
struct Shared {
  RequestHandlerFactory& handlers;
  OpenRequests open{};
  ThreadWaits waits{};
  std::atomic<bool> isClosing = false;  ///< every answer ends its connection
  std::atomic<const Poco::Net::HTTPServer*> server = nullptr;

  /// Returns the connections that have a thread.
  int connections() const {
    const auto* const running = server.load();
    return running == nullptr ? 0 : running->currentConnections();
  }
};

/// Answers with the handler of the pipeline. Ends the connection after the answer while the server is closing, or while
/// more than half of the threads have a connection: a thread would wait for the next request.
class CountedHandler final : public Poco::Net::HTTPRequestHandler {
 public:
  CountedHandler(Shared& shared, int threads, std::unique_ptr<HTTPRequestHandler> handler)
      : shared_(shared), threads_(threads), handler_(std::move(handler)) {
    shared_.open.enter();
  }
  ~CountedHandler() override { shared_.open.leave(); }

  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    if (isLast()) response.setKeepAlive(false);
    handler_->handleRequest(request, response);
    if (isLast()) response.setKeepAlive(false);
  }

 private:
  bool isLast() const { return shared_.isClosing || shared_.connections() > threads_ / 2; }

  Shared& shared_;
  const int threads_;
  const std::unique_ptr<HTTPRequestHandler> handler_;
};

/// Answers a refusal, and ends the connection.
class RefusingHandler final : public Poco::Net::HTTPRequestHandler {
 public:
  RefusingHandler(Shared& shared, Fault fault) : shared_(shared), fault_(std::move(fault)) {}

  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    response.setKeepAlive(false);
    response.setStatusAndReason(static_cast<HTTPServerResponse::HTTPStatus>(fault_.status));
    response.setContentType("application/json");
    if (fault_.status == HTTPServerResponse::HTTP_SERVICE_UNAVAILABLE) response.set("Retry-After", "1");
    BlockingRequest(request, response, shared_.waits).sendText(shared_.handlers.errorBody(fault_.sentence), {});
  }

 private:
  Shared& shared_;
  const Fault fault_;
};

/// Judges heads as strictly as the own transport, then asks the pipeline. Poco's parser accepts heads that two readers
/// could understand differently.
class JudgingFactory final : public Poco::Net::HTTPRequestHandlerFactory {
 public:
  JudgingFactory(Shared& shared, int threads) : shared_(shared), threads_(threads) {}

  Poco::Net::HTTPRequestHandler* createRequestHandler(const HTTPServerRequest& request) override {
    std::ostringstream text;
    request.write(text);
    const std::string bytes = text.str();
    const auto head = parseHead(bytes);
    if (!head) return refuse(request, head.failure());
    if (shared_.connections() > threads_ && head->target != kProbePath) return refuse(request, {503, kTooMany});
    // An absolute target without its authority. The request is the one of the connection, which nothing else uses now.
    const_cast<HTTPServerRequest&>(request).setURI(std::string(head->target));
    std::unique_ptr<Poco::Net::HTTPRequestHandler> handler(shared_.handlers.createRequestHandler(request));
    return new CountedHandler(shared_, threads_, std::move(handler));
  }

 private:
  // Poco sends `100 Continue` unless the response has another status than 200.
  Poco::Net::HTTPRequestHandler* refuse(const HTTPServerRequest& request, Fault fault) {
    request.response().setStatus(static_cast<HTTPServerResponse::HTTPStatus>(fault.status));
    return new RefusingHandler(shared_, std::move(fault));
  }

  Shared& shared_;
  const int threads_;
};

class PocoTransport final : public ServerTransport {
 public:
  PocoTransport(const ServerConfig& config, RequestHandlerFactory& handlers)
      : tls_(config.tlsCertificate.empty()
                 ? nullptr
                 : std::make_unique<TlsContext>(config.tlsCertificate.string(), config.tlsKey.string())),
        socket_(bindServer(config,
                           tls_ ? Poco::Net::SecureServerSocket(tls_->blockingContext()) : Poco::Net::ServerSocket())),
        address_(std::string(tls_ ? "https://" : "http://") + socket_.address().toString()),
        threads_(2, config.threads + kRefusingThreads),
        shared_{handlers} {
    Poco::Net::HTTPServerParams::Ptr params = new Poco::Net::HTTPServerParams;
    params->setTimeout(Poco::Timespan(kTimeoutSeconds, 0));
    params->setKeepAliveTimeout(Poco::Timespan(config.keepAlive.count() * Poco::Timespan::MILLISECONDS));
    params->setMaxThreads(config.threads + kRefusingThreads);
    params->setMaxQueued(kRefusingThreads);
    server_.emplace(new JudgingFactory(shared_, config.threads), threads_, socket_, params);
    shared_.server = &*server_;
  }
  ~PocoTransport() override { stop(Millis(0)); }

  void start() override {
    listenAt(socket_, address_);
    server_->start();
  }

  void reloadCertificate() override {
    throw ConfigError("server.transport = poco reads the certificate at a start only: restart the server");
  }
  bool hasCertificate() const noexcept override { return tls_ != nullptr; }

  void announceClose() override { shared_.isClosing = true; }

  bool stop(Millis grace) override {
    shared_.isClosing = true;
    server_->stop();
    socket_.close();
    const bool isQuiet = shared_.open.awaitNone(grace);
    server_->stopAll(true);  // shuts the sockets, so that no thread waits for its client
    threads_.joinAll();
    return isQuiet;
  }

  const std::string& address() const noexcept override { return address_; }

 private:
  const std::unique_ptr<TlsContext> tls_;
  Poco::Net::ServerSocket socket_;
  const std::string address_;
  Poco::ThreadPool threads_;
  Shared shared_;
  std::optional<Poco::Net::HTTPServer> server_;
};

}  // namespace

std::unique_ptr<ServerTransport> pocoTransport(const ServerConfig& config, RequestHandlerFactory& handlers) {
  return std::make_unique<PocoTransport>(config, handlers);
}

}  // namespace jobq

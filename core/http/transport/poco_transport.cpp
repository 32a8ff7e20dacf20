#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/SecureStreamSocketImpl.h>
#include <Poco/ThreadPool.h>
#include <sys/socket.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/http/transport/blocking_request.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/request_handler.h"
#include "core/http/transport/request_head.h"
#include "core/http/transport/server.h"

namespace jobq {
namespace {

using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;
using Poco::Net::StreamSocket;

/// Longest wait of a read, a write, or for the first request of a connection.
constexpr int kTimeoutSeconds = 20;
/// Threads beyond server.threads. They answer 503, so that a caller learns of the crowd.
constexpr int kRefusingThreads = 16;

/// Answers a refusal, and ends the connection.
class RefusingHandler final : public Poco::Net::HTTPRequestHandler {
 public:
  RefusingHandler(RequestHandlerFactory& handlers, Fault fault) : handlers_(handlers), fault_(std::move(fault)) {}

  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    response.setKeepAlive(false);
    response.setContentType("application/json");
    if (response.getStatus() == HTTPServerResponse::HTTP_SERVICE_UNAVAILABLE) response.set("Retry-After", "1");
    BlockingRequest(request, response, handlers_.threadWaits()).sendText(handlers_.errorBody(fault_.sentence), {});
  }

 private:
  RequestHandlerFactory& handlers_;
  const Fault fault_;
};

/// Judges heads as strictly as the own transport, then asks the pipeline. Poco's parser accepts heads that two readers
/// could understand differently.
class JudgingFactory final : public Poco::Net::HTTPRequestHandlerFactory {
 public:
  JudgingFactory(RequestHandlerFactory& handlers, const Poco::Net::HTTPServer& server, int threads)
      : handlers_(handlers), server_(server), threads_(threads) {}

  Poco::Net::HTTPRequestHandler* createRequestHandler(const HTTPServerRequest& asked) override {
    auto& request = const_cast<HTTPServerRequest&>(asked);  // the one of the connection; nothing else uses it now
    std::ostringstream text;
    request.write(text);
    const std::string bytes = text.str();
    const auto head = parseHead(bytes);
    if (!head) return refuse(request, head.failure());
    const int connections = server_.currentConnections();
    if (connections > threads_ && head->target != kProbePath) {
      return refuse(request, {503, limitReached("all threads have a connection", threads_, "server.threads") +
                                       "; try again in a moment"});
    }
    // A thread would wait for the next request.
    if (connections > threads_ / 2) request.response().setKeepAlive(false);
    request.setURI(std::string(head->target));  // an absolute target without its authority
    return handlers_.createRequestHandler(request);
  }

 private:
  // Poco sends `100 Continue` unless the response has another status than 200.
  Poco::Net::HTTPRequestHandler* refuse(HTTPServerRequest& request, Fault fault) {
    request.response().setStatusAndReason(static_cast<HTTPServerResponse::HTTPStatus>(fault.status));
    return new RefusingHandler(handlers_, std::move(fault));
  }

  RequestHandlerFactory& handlers_;
  const Poco::Net::HTTPServer& server_;
  const int threads_;
};

/// The server's side of TLS. Poco asks the socket for the next request, although OpenSSL may have the request already.
class TlsSocket final : public Poco::Net::SecureStreamSocketImpl {
 public:
  TlsSocket(Poco::Net::SocketImpl* plain, const Poco::Net::Context::Ptr& context)
      : SecureStreamSocketImpl(static_cast<Poco::Net::StreamSocketImpl*>(plain), context) {
    acceptSSL();
  }
  bool poll(const Poco::Timespan& time, int mode) override { return available() > 0 || SocketImpl::poll(time, mode); }
};

/// Poco's server, and the filter of its connections. The references that Poco counts end before the object.
class PocoTransport final : public ServerTransport, public Poco::Net::TCPServerConnectionFilter {
 public:
  PocoTransport(const ServerConfig& config, const Poco::Net::ServerSocket& socket, TlsContext* tls,
                RequestHandlerFactory& handlers)
      : waits_(handlers.threadWaits()),
        tls_(tls),
        threads_(2, config.threads + kRefusingThreads),
        server_(new JudgingFactory(handlers, server_, config.threads), threads_, socket, paramsOf(config)) {
    waits_.isClosing = false;
    server_.setConnectionFilter(Ptr(this, true));
  }

  void start() override { server_.start(); }
  void announceClose() override { waits_.isClosing = true; }
  // A thread waits for its client until the socket is shut. The end of the last answer still leaves then.
  bool stop(Millis grace) override {
    announceClose();
    server_.stop();
    Poco::Net::ServerSocket(server_.socket()).close();
    const bool isQuiet = waits_.awaitNone(grace);
    for (const StreamSocket& each : accepted_) ::shutdown(each.impl()->sockfd(), isQuiet ? SHUT_RD : SHUT_RDWR);
    threads_.joinAll();
    accepted_.clear();
    return isQuiet;
  }

  /// Begins TLS. The handshake takes place in the first read, on a thread. Returns false if all threads have a
  /// connection, and 16 more wait. Threads that just start have none yet.
  bool accept(const StreamSocket& socket) override {
    const int open = server_.currentConnections() + server_.queuedConnections();
    if (open >= server_.maxThreads() + kRefusingThreads) return false;
    auto& accepted = const_cast<StreamSocket&>(socket);  // a variable of the loop that accepts
    if (tls_ != nullptr) accepted = StreamSocket(new TlsSocket(socket.impl(), tls_->blockingContext()));
    std::erase_if(accepted_, [](const StreamSocket& each) { return each.impl()->referenceCount() == 1; });
    accepted_.push_back(accepted);
    return true;
  }

 private:
  static Poco::Net::HTTPServerParams::Ptr paramsOf(const ServerConfig& config) {
    Poco::Net::HTTPServerParams::Ptr params = new Poco::Net::HTTPServerParams;
    params->setTimeout(Poco::Timespan(kTimeoutSeconds, 0));
    params->setKeepAliveTimeout(Poco::Timespan(config.keepAlive.count() * Poco::Timespan::MILLISECONDS));
    params->setMaxQueued(config.threads + 2 * kRefusingThreads);  // accept() refuses before
    return params;
  }

  ThreadWaits& waits_;
  TlsContext* const tls_;
  std::vector<StreamSocket> accepted_;  // of the thread that accepts, then of stop()
  Poco::ThreadPool threads_;
  Poco::Net::HTTPServer server_;
};

}  // namespace

std::unique_ptr<ServerTransport> pocoTransport(const ServerConfig& config, const Poco::Net::ServerSocket& socket,
                                               TlsContext* tls, RequestHandlerFactory& handlers) {
  return std::make_unique<PocoTransport>(config, socket, tls, handlers);
}

}  // namespace jobq

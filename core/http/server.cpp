#include "core/http/server.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/ServerSocket.h>
#include <Poco/ThreadPool.h>

#include "core/http/gate.h"

namespace jobq {
namespace {

constexpr int kBacklog = 4096;
constexpr int kQueued = 4096;
constexpr int kStack = 256 * 1024;
constexpr int kSocketTimeoutSeconds = 60;
constexpr Millis kInFlightGrace{5'000};

// How many requests are being served; stop() waits for none.
class InFlight {
 public:
  void enter() {
    Lock lock(mutex_);
    ++count_;
  }
  void leave() {
    Lock lock(mutex_);
    if (--count_ == 0) none_.notifyAll();
  }
  void awaitNone(Millis atMost) {
    const auto end = std::chrono::steady_clock::now() + atMost;
    Lock lock(mutex_);
    while (count_ > 0 && std::chrono::steady_clock::now() < end) {
      none_.waitFor(mutex_, end - std::chrono::steady_clock::now());
    }
  }

 private:
  Mutex mutex_;
  Condition none_;
  int count_ JOBQ_GUARDED_BY(mutex_) = 0;
};

class Handler final : public Poco::Net::HTTPRequestHandler {
 public:
  Handler(Gate& gate, Gate::Visit visit, InFlight& inFlight)
      : gate_(gate), visit_(std::move(visit)), inFlight_(inFlight) {
    inFlight_.enter();
  }
  ~Handler() override { inFlight_.leave(); }

  void handleRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) override {
    gate_.serve(std::move(visit_), request, response);
  }

 private:
  Gate& gate_;
  Gate::Visit visit_;
  InFlight& inFlight_;
};

class Factory final : public Poco::Net::HTTPRequestHandlerFactory {
 public:
  Factory(Gate& gate, InFlight& inFlight) : gate_(gate), inFlight_(inFlight) {}

  Poco::Net::HTTPRequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest& request) override {
    Gate::Visit visit = gate_.enter(request);
    // Poco sends `100 Continue` before the handler runs, unless the status says no already (libraries.md 1a).
    if (visit.refusal) {
      request.response().setStatusAndReason(static_cast<Poco::Net::HTTPResponse::HTTPStatus>(visit.refusal->status));
    }
    return new Handler(gate_, std::move(visit), inFlight_);
  }

 private:
  Gate& gate_;
  InFlight& inFlight_;
};

}  // namespace

struct HttpServer::Poco {
  explicit Poco(int threads) : pool(1, threads, 60, kStack) {}
  InFlight inFlight;
  ::Poco::ThreadPool pool;
  ::Poco::Net::ServerSocket socket;
  std::unique_ptr<::Poco::Net::HTTPServer> server;
};

HttpServer::HttpServer(const ServerConfig& config, Gate& gate, Log& log) : config_(config), gate_(gate), log_(log) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::start() {
  if (poco_) return;
  auto poco = std::make_unique<Poco>(config_.threads);
  const std::string where = config_.host + ":" + std::to_string(config_.port);
  try {
    // Not the constructor that binds: it sets SO_REUSEPORT, and a second server would share the port without a word.
    poco->socket.bind(::Poco::Net::SocketAddress(config_.host, config_.port), true, false);
    poco->socket.listen(kBacklog);
  } catch (const ::Poco::Exception& error) {
    throw ConfigError("server.host and server.port: cannot listen on " + where + ": " + error.displayText());
  }
  ::Poco::Net::HTTPServerParams::Ptr params = new ::Poco::Net::HTTPServerParams;
  params->setMaxThreads(config_.threads);
  params->setMaxQueued(kQueued);
  params->setKeepAlive(true);
  params->setKeepAliveTimeout(::Poco::Timespan(config_.keepAlive.count() * 1000));
  params->setTimeout(::Poco::Timespan(kSocketTimeoutSeconds, 0));
  params->setSoftwareVersion("jobq");
  poco->server = std::make_unique<::Poco::Net::HTTPServer>(
      ::Poco::Net::HTTPRequestHandlerFactory::Ptr(new Factory(gate_, poco->inFlight)), poco->pool, poco->socket,
      params);
  poco->server->start();
  poco_ = std::move(poco);
  log_.write(LogLevel::information, "http.listening", address());
}

void HttpServer::stop() {
  if (!poco_) return;
  poco_->server->stop();
  poco_->inFlight.awaitNone(kInFlightGrace);
  poco_->server->stopAll(true);
  poco_->pool.joinAll();
  poco_.reset();
}

std::string HttpServer::address() const {
  return poco_ ? "http://" + poco_->socket.address().toString() : std::string();
}

}  // namespace jobq

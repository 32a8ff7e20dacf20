// The objects shared by the connections of a server, with small budgets, for tests without a reactor.
#pragma once

#include <Poco/Net/HTTPServerParams.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/suspended_call.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/connection.h"
#include "core/http/transport/crowd.h"
#include "core/http/transport/message.h"
#include "core/http/transport/request_handler.h"
#include "core/http/transport/slow_readers.h"
#include "set_time.h"

namespace Poco::Net {
class HTTPServerParams;
}

namespace jobq::test {

/// Hands out one stop token and records the connections.
class CountingMonitor final : public ConnectionPlaces {
 public:
  bool beginStay(Connection& connection) override {
    if (onStay) onStay();
    if (std::exchange(isResumed, false)) return false;
    connection.threadStay().begin();
    return true;
  }
  std::stop_token watch(std::uint64_t connection) override {
    watched.push_back(connection);
    return source.get_token();
  }
  void unwatch(std::uint64_t connection) noexcept override { unwatched.push_back(connection); }

  std::function<void()> onStay;
  bool isResumed = false;  // the request was resumed before its next stay
  std::stop_source source;
  std::vector<std::uint64_t> watched;
  std::vector<std::uint64_t> unwatched;
};

/// Records the resumed calls.
class RecordingResumer final : public CallResumer {
 public:
  void resume(std::uint64_t call) noexcept override { resumed.push_back(call); }
  std::vector<std::uint64_t> resumed;
};

/// Serves every request with the function of the test.
class FunctionHandlers : public RequestHandlerFactory {
 public:
  using Serve = std::function<void(ServerRequest&, ServerResponse&)>;

  explicit FunctionHandlers(Serve serve) : act(std::move(serve)) {}
  RequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest&) override { return new Handler(act); }
  std::string errorBody(std::string_view sentence) const override {
    return "{\"error\":\"" + std::string(sentence) + "\"}";
  }

  Serve act;

 private:
  class Handler final : public RequestHandler {
   public:
    explicit Handler(const Serve& serve) : serve_(serve) {}
    void handleRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) override {
      serve_(static_cast<ServerRequest&>(request), static_cast<ServerResponse&>(response));
    }

   private:
    const Serve& serve_;
  };
};

/// Serves every request with a function of the test that may let the request wait.
class SteppingHandlers : public RequestHandlerFactory {
 public:
  using Progress = RequestHandler::Progress;
  using Serve = std::function<Progress(ServerRequest&, ServerResponse&)>;

  explicit SteppingHandlers(Serve serve) : act(std::move(serve)) {}
  RequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest&) override { return new Handler(act); }
  std::string errorBody(std::string_view sentence) const override { return std::string(sentence); }

  Serve act;

 private:
  class Handler final : public RequestHandler {
   public:
    explicit Handler(const Serve& serve) : serve_(serve) {}
    void handleRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) override {
      auto& own = static_cast<ServerRequest&>(request);
      own.noteProgress(serve_(own, static_cast<ServerResponse&>(response)));
    }

   private:
    const Serve& serve_;
  };
};

/// A base of test fixtures with connections.
class ConnectionFixture {
 protected:
  Connection::Server serverOf(RequestHandlerFactory& handlers) {
    return {handlers, *params_, waiting_, readers_, heads_, watch_, resumer_, closing_, threadsBusy_, crowd_, time_};
  }

  const Poco::Net::HTTPServerParams::Ptr params_ = new Poco::Net::HTTPServerParams;
  Budget waiting_{8};
  SlowReaders readers_{8};
  Budget heads_{1UL << 20};
  CountingMonitor watch_;
  RecordingResumer resumer_;
  std::atomic<bool> closing_ = false;
  SetTime time_;
  Crowd crowd_{0};                        // large behind the first request of noteReactor()
  std::atomic<bool> threadsBusy_ = true;  // no thread lingers for a next request
};

}  // namespace jobq::test

// The request pipeline on one connection, with a limiter controlled by the test. Used in tests of the checks on a
// request.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connection_fixture.h"
#include "core/auth/api_keys.h"
#include "core/auth/key_record.h"
#include "core/auth/scope.h"
#include "core/base/clock.h"
#include "core/config/limits.h"
#include "core/http/api/api_request.h"
#include "core/http/api/body_memory.h"
#include "core/http/api/cors.h"
#include "core/http/api/request_pipeline.h"
#include "core/http/api/router.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/connection.h"
#include "core/http/transport/message.h"
#include "core/http/transport/request_handler.h"
#include "core/jobs/later_submission.h"
#include "core/jobs/queue_signal.h"
#include "core/limits/rate_limit_gate.h"
#include "endpoint_fixture.h"
#include "jobq/job.h"
#include "jobq/rate_limiter.h"
#include "jobq/time.h"
#include "socket_pair.h"
#include "tests/support/fakes.h"

namespace jobq {

class OpenLimiter final : public RateLimiter {
 public:
  RateVerdict enter(std::string_view key, const RateLimit& limit, Instant) override {
    if (broken) throw 7;
    if (limit.requests > 0) counted.emplace_back(key);
    if (key.ends_with("/malformed") && tooMalformed) return {false, Millis(3'000), 0};
    if (verdict.allowed) ++inside;
    return verdict;
  }
  void leave(std::string_view) override { --inside; }

  RateVerdict verdict{true, Millis(0), 5};
  int inside = 0;
  bool broken = false;  ///< throws an int, outside of std::exception
  bool tooMalformed = false;
  std::vector<std::string> counted;  ///< the keys of the rates asked for
};

/// The pipeline, with a call of the test between the head and the body.
class WatchedPipeline final : public RequestHandlerFactory {
 public:
  explicit WatchedPipeline(RequestPipeline& pipeline) : pipeline_(pipeline) {}
  RequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest& request) override {
    RequestHandler* const handler = pipeline_.createRequestHandler(request);
    entered();
    return handler;
  }
  std::string errorBody(std::string_view sentence) const override { return pipeline_.errorBody(sentence); }

  std::function<void()> entered = [] {};  ///< called when the head has been judged

 private:
  RequestPipeline& pipeline_;
};

class RequestPipelineTest : public testing::Test, protected test::EndpointFixture, protected test::ConnectionFixture {
 protected:
  explicit RequestPipelineTest(std::set<std::string> origins = {}) : cors_(std::move(origins)) {
    addRoute({"GET"}, "/ping", Scope::none);
    addRoute({"GET", "POST"}, "/v1/things", Scope::admin).needsBody = false;
    Route& run = addRoute({"POST"}, "/v2/{endpoint}/run", Scope::client);
    run.needsBody = true;
    run.bodyLimit = 4UL << 20;
    run.operation = Operation::run;
    for (Route& route : routes_) router_.add(std::move(route));
    ApiKey key;
    key.scopes = {"client"};
    client_ = keys_.create(key);
    ApiKey admin;
    admin.scopes = {"admin"};
    admin_ = keys_.create(admin);
  }

  Route& addRoute(std::vector<std::string> methods, const std::string& pattern, const RouteAccess& scope) {
    Route route{.scope = scope};
    route.methods = std::move(methods);
    route.pattern = pattern;
    route.run = [this](ApiRequest& call) { return act_(call); };
    return routes_.emplace_back(std::move(route));
  }

  /// Sends a request over a separate connection and returns the whole answer.
  std::string ask(const std::string& text) {
    test::SocketPair client;
    Connection connection(1, client.releaseStream(), server_);
    client.send(text);
    EXPECT_EQ(connection.receive(), Connection::Ready::yes);
    next_ = connection.serve();
    return client.received();
  }
  static std::string head(const std::string& line, const std::string& key, const std::string& fields = "") {
    return line + " HTTP/1.1\r\nHost: h\r\n" + (key.empty() ? "" : "Authorization: Bearer " + key + "\r\n") + fields +
           "\r\n";
  }
  std::string run(const std::string& body, const std::string& endpoint = "ep") {
    return ask(
        head("POST /v2/" + endpoint + "/run", client_, "Content-Length: " + std::to_string(body.size()) + "\r\n") +
        body);
  }

  std::function<ApiResponse(ApiRequest&)> act_ = [](ApiRequest&) { return ApiResponse{200, "{}"}; };
  std::vector<Route> routes_;
  Router router_;
  Node node_{*this, {fixedEndpoint("ep")}};
  const ClockAsWallClock wall_{storage.clock};
  ApiKeys keys_{storage->records(), storage.clock, wall_, storage.log};
  OpenLimiter limiter_;
  test::FixedLoad load_;
  RateLimitGate rates_{{}, {limiter_, storage.clock, load_}};
  BodyMemory bodyMemory_{3UL << 20};
  QueueSignal queueSignal_{{"ep"}};
  LaterSubmissions later_{*storage, queueSignal_};
  BodyMemory answerMemory_{3UL << 20};
  const CorsPolicy cors_;
  RequestPipeline pipeline_{router_,       keys_, node_.registry, rates_,     bodyMemory_,
                            answerMemory_, cors_, later_,         storage.log};
  WatchedPipeline handlers_{pipeline_};
  const Connection::Server server_ = serverOf(handlers_);
  Connection::Next next_ = Connection::Next::close;
  std::string client_;
  std::string admin_;
};

}  // namespace jobq

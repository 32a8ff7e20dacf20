// A table of routes called without a socket: a request goes to the function of its route and comes back as an answer.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/auth/api_keys.h"
#include "core/auth/key_record.h"
#include "core/auth/scope.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/http/api/api_request.h"
#include "core/http/api/body_memory.h"
#include "core/http/api/router.h"
#include "core/http/api/routes.h"
#include "core/jobs/run_stopper.h"
#include "jobq/job.h"
#include "jobq/node_store.h"
#include "tests/support/held_caller.h"

namespace jobq::test {

/// The workers of every endpoint, as set by the test.
class FixedWorkers final : public WorkerStatus {
 public:
  WorkerCounts counts(const EndpointId&) const override { return number; }
  WorkerPoolView view(const EndpointId&) const override { return pool; }
  std::string_view waitReason(const Endpoint&, bool lowPriority) const override {
    return lowPriority ? "workers_busy" : "no_workers";
  }
  std::optional<std::string> advice(const Endpoint&, AdviceReader) const override { return std::nullopt; }

  WorkerCounts number;
  WorkerPoolView pool;
};

/// Records the stopped runs.
class RecordingStopper final : public RunStopper {
 public:
  void stopRun(const LeaseRef& lease) override { stopped.push_back(lease); }
  std::vector<LeaseRef> stopped;
};

/// A base of test fixtures with a table of routes.
class RouteFixture {
 protected:
  using Query = std::multimap<std::string, std::string>;

  /// Calls the function of the route. Fails the test if no route matches.
  ApiResponse call(const std::string& method, const std::string& path, std::string body = "", Query query = {}) {
    ApiRequest request;
    request.method = method;
    request.path = path;
    request.body = std::move(body);
    request.query = std::move(query);
    return call(std::move(request));
  }
  ApiResponse call(ApiRequest request) {
    const auto found = router_.find(request.method, request.path);
    const auto* match = std::get_if<Router::Match>(&found);
    if (match == nullptr) {
      ADD_FAILURE() << "no route matches " << request.method << " " << request.path;
      return {0, ""};
    }
    scope_ = match->route->scope;
    request.params = match->params;
    request.endpoint = endpoint_;
    request.key = key_;
    HeldCaller client;
    if (!mayBlock_) client.forbidBlocking();
    request.client = &client;
    request.room.use(answers_, "ep");
    RouteResult result = match->route->run(request);
    warning_ = request.warning;
    if (auto* response = std::get_if<ApiResponse>(&result)) return std::move(*response);
    PendingCall& pending = *std::get<std::unique_ptr<PendingCall>>(result);
    return client.whenReady([&] { return pending.poll(request); });
  }

  /// Returns the headers of an answer as one text, such as "Retry-After: 1\n".
  static std::string headersOf(const ApiResponse& response) {
    std::string text;
    for (const auto& [name, value] : response.headers) text += name + ": " + value + "\n";
    return text;
  }

  static ApiKeyPtr keyFor(std::vector<std::string> scopes, std::vector<std::string> endpoints) {
    ApiKey key;
    key.id = "key";
    key.name = "k";
    key.scopes = std::move(scopes);
    key.endpoints = std::move(endpoints);
    return std::make_shared<const ApiKey>(key);
  }

  static constexpr std::uint64_t kAnswers = 256UL << 20;  ///< bytes

  Router router_;
  /// Gives later calls a key with these scopes. The scopes of the routes are not checked.
  void useKey(std::vector<std::string> scopes, std::vector<std::string> endpoints = {}) {
    key_ = keyFor(std::move(scopes), std::move(endpoints));
  }

  RouteAccess scope_ = Scope::none;  ///< scopes of the route called last
  std::string warning_;              ///< warning of the route called last
  EndpointPtr endpoint_;             ///< endpoint of routes with {endpoint}
  ApiKeyPtr key_ = keyFor({"admin"}, {});
  bool mayBlock_ = true;          ///< the calling thread may block
  BodyMemory answers_{kAnswers};  ///< memory for answers
};

/// Two answers are equal if status and body are; a failure prints both.
inline void expectAnswer(const ApiResponse& response, int status, const std::string& body) {
  EXPECT_EQ(response.status, status);
  EXPECT_EQ(response.body, body);
}

}  // namespace jobq::test

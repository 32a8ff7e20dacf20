// The routes of the queue API without a socket, over the memory storage. The test plays the worker.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/secret_box.h"
#include "core/config/limits.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/filter_pool.h"
#include "core/http/api/api_request.h"
#include "core/http/api/body_memory.h"
#include "core/http/api/routes.h"
#include "core/http/transport/budget.h"
#include "core/jobs/claimer.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "core/jobs/later_submission.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/run_reports.h"
#include "core/limits/rate_limit_gate.h"
#include "jobq/admission_filter.h"
#include "jobq/job.h"
#include "jobq/json.h"
#include "jobq/rate_limiter.h"
#include "jobq/time.h"
#include "route_fixture.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"
#include "tests/support/fakes.h"
#include "unit_storage.h"

namespace jobq::test {

/// Counts no request and refuses each request that would have to be counted.
class ClosedLimiter final : public RateLimiter {
 public:
  RateVerdict enter(std::string_view, const RateLimit& limit, Instant) override {
    return limit.requests > 0 ? RateVerdict{false, Millis(1'500), 0} : RateVerdict{true, Millis(0), 0};
  }
  void leave(std::string_view) override {}
};

/// Filters that judge with the function of the test.
class DecidingFilters final : public AdmissionFilterFactory {
 public:
  using Decide = std::function<Decision(const AdmissionRequest&)>;
  explicit DecidingFilters(Decide decide) : decide_(std::move(decide)) {}
  std::unique_ptr<AdmissionFilter> make(std::string_view) override { return std::make_unique<Filter>(decide_); }

 private:
  class Filter final : public AdmissionFilter {
   public:
    explicit Filter(const Decide& decide) : decide_(decide) {}
    Decision review(const AdmissionRequest& job) override { return decide_(job); }

   private:
    const Decide& decide_;
  };
  const Decide decide_;
};

/// A base of test fixtures: the endpoint `ep`, the key `key`, and the routes of both mounts.
class QueueRoutesFixture : protected RouteFixture {
 protected:
  static constexpr std::uint64_t kAnswersOfEndpoint = kAnswers / 4;

  QueueRoutesFixture() {
    spec_.spec.id = "ep";
    spec_.policy = &storage_.policy;
    spec_.spec.workersMax = 3;
    showEndpoint();
    useKey({"client"});
    addQueueRoutes(router_, {jobs_, later_, {box_}, workers_, runs_, draining_, waiting_});
  }

  /// Gives later calls the endpoint as it is in `spec_` now.
  void showEndpoint() { endpoint_ = std::make_shared<const Endpoint>(spec_); }

  /// Calls the route on another thread and waits until the call waits for a job.
  std::future<ApiResponse> callAndWait(const std::string& method, const std::string& path, Millis wait,
                                       const std::string& body = "") {
    auto answer = std::async(std::launch::async, [=, this] {
      return call(method, path, body, {{"wait", std::to_string(wait.count())}});
    });
    storage_.clock.awaitWaiter(Millis(1), wait);
    return answer;
  }

  /// Calls the route with a rate limit that has no request left.
  ApiResponse callTooOften(Operation operation, const std::string& method, const std::string& path,
                           const std::string& body = "") {
    LimitSettings own{};
    own[static_cast<std::size_t>(operation)] = {2, Millis(1'000), 0, 0};
    RateLimitGate rates({}, {limiter_, storage_.clock, load_});
    auto entered = rates.enter("ep", operation, {own, 1'000'000});
    ApiRequest request;
    request.method = method;
    request.path = path;
    request.body = body;
    request.permit = std::move(entered->permit);
    return call(std::move(request));
  }
  static std::string tooOften(const std::string& operation) {
    return R"({"error":"too many requests: the limit of )" + operation + " is 2 in 1000 ms (limits." + operation +
           R"( of the settings, or rateLimits of the endpoint); try again after Retry-After, )"
           R"(and double the pause each time"})";
  }
  static std::string noSuchJob(const std::string& id) {
    return R"({"error":"there is no job )" + id + R"( here: the id is wrong, or its result has expired"})";
  }

  /// Returns the text of the member `id` of an answer.
  static std::string idOf(const ApiResponse& response) {
    const auto read = json::read(response.body);
    const auto* document = std::get_if<json::Document>(&read);
    const auto id = document == nullptr ? std::nullopt : document->find("id");
    return id ? json::toText(*id).value_or("") : "";
  }

  /// Takes all memory for answers of the endpoint, except for `left` bytes.
  BodyMemory::Reservation reserveAnswers(std::uint64_t left) {
    BodyMemory::Reservation all;
    EXPECT_TRUE(all.grow(answerMemory_, "ep", kAnswersOfEndpoint - left));
    return all;
  }

  LeaseRef claim() const { return storage_.claim().lease; }
  /// Submits, claims and ends a job.
  void runJob(const JobId& id, Outcome outcome) {
    storage_.insert(id);
    (void)reports_.finish(claim(), std::move(outcome), false);
  }

  UnitStorage storage_;
  const testkit::TemporaryFolder folder_;
  const SecretBox box_{folder_ / "secret.key"};
  QueueSignal queueSignal_{{"ep"}};
  ClaimerSlot claimer_{queueSignal_};
  CompletionNotifier completions_{storage_.clock};
  CountingDeliveries deliveries_;
  JobService jobs_{*storage_, queueSignal_, claimer_, completions_, deliveries_};
  LaterSubmissions later_{*storage_, queueSignal_};
  RunReports reports_{*storage_, queueSignal_, claimer_, completions_, deliveries_};
  FixedWorkers workers_;
  RecordingStopper runs_;
  std::atomic<bool> draining_ = false;
  Budget waiting_{4};
  BodyMemory& answerMemory_ = answers_;
  ClosedLimiter limiter_;
  FixedLoad load_;
  Endpoint spec_;
};

}  // namespace jobq::test

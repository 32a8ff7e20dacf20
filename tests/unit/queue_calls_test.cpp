// Tests of the calls about an endpoint's queue without a socket: /health, /requests and /purge-queue
// (core/http/api/management/endpoint_calls.cpp, core/http/api/queue/queue_routes.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "jobq/error.h"
#include "queue_routes_fixture.h"

namespace jobq {
namespace {

using test::expectAnswer;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class QueueCallsTest : public testing::Test, protected test::QueueRoutesFixture {
 protected:
  ApiResponse requests(Query query = {}) { return call("GET", "/v2/ep/requests", "", std::move(query)); }
};

TEST_F(QueueCallsTest, BothMountsHaveTheSameRoutes) {
  std::vector<std::string> plain;
  std::vector<std::string> sdk;
  for (const Router::Row& row : router_.rows()) {
    const std::string& route = row.call;
    const std::size_t at = route.find("/sdk/v2/");
    if (at == std::string::npos && route != "GET /v1/jobs") plain.push_back(route);
    if (at != std::string::npos) sdk.push_back(route.substr(0, at) + route.substr(at + 4));
  }
  EXPECT_EQ(plain, sdk);
  EXPECT_THAT(plain, UnorderedElementsAre("POST /v2/{endpoint}/run", "POST /v2/{endpoint}/runsync",
                                          "GET /v2/{endpoint}/status/{id}", "POST /v2/{endpoint}/status/{id}",
                                          "GET /v2/{endpoint}/status-sync/{id}", "POST /v2/{endpoint}/status-sync/{id}",
                                          "GET /v2/{endpoint}/stream/{id}", "POST /v2/{endpoint}/stream/{id}",
                                          "GET /v2/{endpoint}/logs/{id}", "POST /v2/{endpoint}/cancel/{id}",
                                          "POST /v2/{endpoint}/retry/{id}", "POST /v2/{endpoint}/purge-queue",
                                          "GET /v2/{endpoint}/requests", "GET /v2/{endpoint}/health",
                                          "POST /v2/{endpoint}/openai/{route}", "GET /v2/{endpoint}/openai/{route}"));
}

TEST_F(QueueCallsTest, HealthCountsJobsWebhooksAndWorkers) {
  expectAnswer(call("GET", "/v2/ep/health"), 200,
               R"({"jobs":{"completed":0,"failed":0,"inProgress":0,"inQueue":0,"retried":0},)"
               R"("webhooks":{"owed":0,"oldestMs":0},)"
               R"("workers":{"idle":0,"initializing":0,"ready":0,"running":0,"throttled":0,"unhealthy":0}})");
  runJob("a", Completed{"1"});
  runJob("b", Failed{"no luck", ""});
  runJob("c", Failed{"no luck", ""});
  EXPECT_EQ(call("POST", "/v2/ep/retry/c").status, 200);
  (void)claim();
  storage_.insert("d");
  JobSpec told;
  told.id = "e";
  told.endpoint = "ep";
  told.input = "{}";
  told.webhook = "http://h/";
  (void)storage_->jobs().insert(std::move(told), storage_.policy);
  (void)storage_->jobs().cancel({"ep", "e"});
  storage_.clock.advance(Millis(1'500));
  workers_.number = {1, 2, 3, 4, 5, 6};
  expectAnswer(call("GET", "/v2/ep/health"), 200,
               R"({"jobs":{"completed":1,"failed":2,"inProgress":1,"inQueue":1,"retried":1},)"
               R"("webhooks":{"owed":1,"oldestMs":1500},)"
               R"("workers":{"idle":1,"initializing":2,"ready":3,"running":4,"throttled":5,"unhealthy":6}})");
  EXPECT_EQ(scope_, Scope::client | Scope::read | Scope::monitor);
}

TEST_F(QueueCallsTest, RequestsAreListedNewestFirst) {
  expectAnswer(requests(), 200, R"({"requests":[],"total":0,"offset":0,"limit":50,"hasMore":false})");
  runJob("a", Completed{"1"});
  storage_.insert("b");
  expectAnswer(requests(), 200,
               R"({"requests":[{"id":"b","status":"IN_QUEUE","createdAt":"2026-01-01T00:00:00.000Z","keyId":""},)"
               R"({"id":"a","status":"COMPLETED","delayTime":0,"executionTime":0,"workerId":"w",)"
               R"("createdAt":"2026-01-01T00:00:00.000Z","startedAt":"2026-01-01T00:00:00.000Z",)"
               R"("endedAt":"2026-01-01T00:00:00.000Z","keyId":""}],)"
               R"("total":2,"offset":0,"limit":50,"hasMore":false})");
  expectAnswer(
      requests({{"status", "IN_QUEUE"}}), 200,
      R"({"requests":[{"id":"b","status":"IN_QUEUE",)"
      R"("createdAt":"2026-01-01T00:00:00.000Z","keyId":""}],"total":1,"offset":0,"limit":50,"hasMore":false})");
  expectAnswer(requests({{"status", "FAILED"}}), 200,
               R"({"requests":[],"total":0,"offset":0,"limit":50,"hasMore":false})");
}

TEST_F(QueueCallsTest, ALongListComesInPages) {
  for (const char* id : {"a", "b", "c"}) storage_.insert(id);
  const ApiResponse first = requests({{"limit", "2"}});
  EXPECT_THAT(first.body,
              HasSubstr(R"([{"id":"c","status":"IN_QUEUE",)"
                        R"("createdAt":"2026-01-01T00:00:00.000Z","keyId":""},{"id":"b","status":"IN_QUEUE",)"
                        R"("createdAt":"2026-01-01T00:00:00.000Z","keyId":""}],)"
                        R"("total":3,"offset":0,"limit":2,"hasMore":true,"cursor":)"));
  const std::size_t at = first.body.rfind(':') + 1;
  const std::string cursor = first.body.substr(at, first.body.size() - at - 1);
  expectAnswer(
      requests({{"limit", "2"}, {"cursor", cursor}}), 200,
      R"({"requests":[{"id":"a","status":"IN_QUEUE",)"
      R"("createdAt":"2026-01-01T00:00:00.000Z","keyId":""}],"total":3,"offset":0,"limit":2,"hasMore":false})");
  expectAnswer(
      requests({{"limit", "2"}, {"offset", "2"}}), 200,
      R"({"requests":[{"id":"a","status":"IN_QUEUE",)"
      R"("createdAt":"2026-01-01T00:00:00.000Z","keyId":""}],"total":3,"offset":2,"limit":2,"hasMore":false})");
}

TEST_F(QueueCallsTest, AWrongParameterOfTheListIsNamed) {
  const std::pair<Query, std::string> cases[] = {
      {{{"status", "DONE"}},
       "status must be IN_QUEUE, IN_PROGRESS, COMPLETED, FAILED, CANCELLED or TIMED_OUT, not DONE"},
      {{{"status", "FAILED"}, {"status", "FAILED"}}, "status appears more than once in the query: send it once"},
      {{{"limit", "0"}}, "limit must be an integer from 1 to 100"},
      {{{"limit", "101"}}, "limit must be an integer from 1 to 100"},
      {{{"offset", "-1"}}, "offset must be an integer from 0 to 9007199254740992"},
      {{{"cursor", "0"}}, "cursor must be an integer from 1 to 9007199254740992"}};
  for (const auto& [query, sentence] : cases) {
    expectAnswer(requests(query), 400, R"({"error":")" + sentence + "\"}");
    expectAnswer(call("GET", "/sdk/v2/ep/requests", "", query), 400, R"({"error":")" + sentence + "\"}");
  }
}

TEST_F(QueueCallsTest, APurgeRemovesTheQueuedJobs) {
  storage_.insert("running");
  (void)claim();
  storage_.insert("a");
  storage_.insert("b");
  storage_.insert("c", "other");
  expectAnswer(call("POST", "/v2/ep/purge-queue"), 200, R"({"removed":2,"status":"completed"})");
  EXPECT_EQ(storage_.stateOf("running"), JobState::inProgress);
  EXPECT_EQ(storage_.stateOf("c", "other"), JobState::inQueue);
  expectAnswer(call("POST", "/v2/ep/purge-queue"), 200, R"({"removed":0,"status":"completed"})");
}

TEST_F(QueueCallsTest, ACallBeyondTheRateChangesNothing) {
  storage_.insert("a");
  expectAnswer(callTooOften(Operation::purgeQueue, "POST", "/v2/ep/purge-queue"), 429, tooOften("purgeQueue"));
  expectAnswer(callTooOften(Operation::requests, "GET", "/v2/ep/requests"), 429, tooOften("requests"));
  expectAnswer(callTooOften(Operation::status, "GET", "/v2/ep/health"), 429, tooOften("status"));
  EXPECT_EQ(storage_.stateOf("a"), JobState::inQueue);
}

TEST_F(QueueCallsTest, AFailingStorageIsNoAnswer) {
  for (const auto& [operation, method, path] :
       {std::tuple("jobs.counts", "GET", "/v2/ep/health"), std::tuple("outbox.owed", "GET", "/v2/ep/health"),
        std::tuple("jobs.list", "GET", "/v2/ep/requests"),
        std::tuple("jobs.purgeQueued", "POST", "/v2/ep/purge-queue")}) {
    storage_.faults.failNext(operation);
    EXPECT_THROW((void)call(method, path), StorageError) << operation;
  }
}

}  // namespace
}  // namespace jobq

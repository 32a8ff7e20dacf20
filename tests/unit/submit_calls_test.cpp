// Tests of /run and /runsync without a socket (core/http/api/queue/submit_calls.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>

#include "core/endpoints/filter_pool.h"
#include "core/jobs/admission.h"
#include "jobq/admission_filter.h"
#include "jobq/error.h"
#include "queue_routes_fixture.h"

namespace jobq {
namespace {

using test::expectAnswer;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

const std::string kBody = R"({"input":{"a" : 1.50}})";

class SubmitCallsTest : public testing::Test, protected test::QueueRoutesFixture {
 protected:
  ApiResponse submit(const std::string& idempotencyKey, const std::string& body = kBody,
                     const std::string& path = "/v2/ep/run") {
    ApiRequest request;
    request.method = "POST";
    request.path = path;
    request.body = body;
    request.idempotencyKey = idempotencyKey;
    return call(std::move(request));
  }
  std::uint64_t queued() { return storage_.real->jobs().counts("ep").inQueue; }
  /// Gives the endpoint one filter.
  void filter(FilterPool& pool) {
    spec_.filters = {&pool};
    showEndpoint();
  }
};

/// A filter that accepts every job and counts the jobs.
struct CountingFilter {
  int asked = 0;
  test::DecidingFilters filters{[this](const AdmissionRequest&) {
    ++asked;
    return Accept{};
  }};
  FilterPool pool{"plugin/counting", filters, ""};
};

TEST_F(SubmitCallsTest, ARunIsQueuedWithTheBytesOfTheInput) {
  queueSignal_.clear("ep");
  const ApiResponse response = call("POST", "/v2/ep/run", kBody);
  const std::string id = idOf(response);
  EXPECT_THAT(id, MatchesRegex("[0-9a-f-]{36}-u1"));
  expectAnswer(response, 200, R"({"id":")" + id + R"(","status":"IN_QUEUE"})");
  EXPECT_EQ(scope_, Scope::client | Scope::submit);
  const ClaimedJob job = storage_.claim();
  EXPECT_EQ(job.lease.job, id);
  EXPECT_EQ(job.input, R"({"a" : 1.50})");
  EXPECT_TRUE(queueSignal_.isSet("ep")) << "the dispatcher is notified of the job";
}

TEST_F(SubmitCallsTest, ARunOnANonBlockingThreadIsTheSame) {
  queueSignal_.clear("ep");
  (void)queueSignal_.consume();
  storage_.faults.failOperation("jobs.insert");  // which may block
  mayBlock_ = false;
  const ApiResponse response = call("POST", "/v2/ep/run", kBody);
  expectAnswer(response, 200, R"({"id":")" + idOf(response) + R"(","status":"IN_QUEUE"})");
  EXPECT_EQ(storage_.claim().input, R"({"a" : 1.50})");
  EXPECT_TRUE(queueSignal_.isSet("ep"));
  EXPECT_FALSE(queueSignal_.consume()) << "the dispatcher wakes at the end of the turn";
  later_.announce();
  EXPECT_TRUE(queueSignal_.consume());
  later_.announce();
  EXPECT_FALSE(queueSignal_.consume()) << "no further job waits";
}

TEST_F(SubmitCallsTest, ARunOnANonBlockingThreadKnowsRepeatedKeysAndFaults) {
  const ApiResponse first = submit("k");
  mayBlock_ = false;
  expectAnswer(submit("k"), 200, first.body);
  expectAnswer(submit("k", R"({"input":{}})"), 400,
               R"({"error":"this Idempotency-Key came with another body within 24 hours: send a new key"})");
  EXPECT_EQ(queued(), 1U);
  storage_.faults.failNext("jobs.insertLater");
  EXPECT_THROW((void)call("POST", "/v2/ep/run", kBody), StorageError);
  EXPECT_EQ(queued(), 1U);
}

TEST_F(SubmitCallsTest, AWrongBodyIsRefusedWithASingleSentence) {
  const std::pair<std::string, std::string> cases[] = {
      {"{}", R"({"error":"input is missing: send {\"input\": {...}}"})"},
      {R"({"input":7})", R"({"error":"input must be a JSON object"})"},
      {"[]", R"({"error":"the body must be a JSON object with the key input"})"},
      {R"({"input":{},"policy":{"ttl":1}})",
       R"({"error":"policy.ttl must be an integer from 10000 to 604800000 milliseconds"})"},
      {R"({"input":{},"policy":{"lowPriority":1}})", R"({"error":"policy.lowPriority must be true or false"})"},
      {R"({"input":{},"s3Config":{"accessId":1}})", R"({"error":"s3Config.accessId must be a string"})"}};
  for (const auto& [body, sentence] : cases) {
    for (const char* route : {"/v2/ep/run", "/v2/ep/runsync"}) expectAnswer(call("POST", route, body), 400, sentence);
  }
  const ApiResponse broken = call("POST", "/v2/ep/run", "{");
  EXPECT_EQ(broken.status, 400);
  EXPECT_THAT(broken.body, StartsWith(R"({"error":"the body is not valid JSON: )"));
  EXPECT_EQ(queued(), 0U);
}

TEST_F(SubmitCallsTest, TheOtherMountBoundsNumbersOfThePolicy) {
  EXPECT_EQ(call("POST", "/sdk/v2/ep/run", R"({"input":{},"policy":{"priority":5000}})").status, 200);
  EXPECT_EQ(call("POST", "/v2/ep/run", R"({"input":{},"policy":{"priority":5000}})").status, 400);
  EXPECT_EQ(queued(), 1U);
}

TEST_F(SubmitCallsTest, ARepeatedIdempotencyKeyIsTheFirstJob) {
  const ApiResponse first = submit("k");
  expectAnswer(submit("k"), 200, first.body);
  expectAnswer(submit("k", R"({"input":{}})"), 400,
               R"({"error":"this Idempotency-Key came with another body within 24 hours: send a new key"})");
  EXPECT_NE(idOf(submit("K")), idOf(first)) << "a different key makes a different job";
  EXPECT_EQ(queued(), 2U);
}

TEST_F(SubmitCallsTest, AnIdempotencyKeyHas1To255PrintableCharacters) {
  for (const std::string& wrong : {std::string(), std::string("a b"), std::string(256, 'k'), std::string("\xc3\xa9")}) {
    expectAnswer(submit(wrong), 400,
                 R"({"error":"Idempotency-Key must be 1 to 255 printable ASCII characters without blanks"})");
  }
  EXPECT_EQ(submit(std::string(255, 'k')).status, 200);
  EXPECT_EQ(queued(), 1U);
}

TEST_F(SubmitCallsTest, ADrainingServerTakesNoJob) {
  draining_ = true;
  for (const char* route : {"/v2/ep/run", "/v2/ep/runsync"}) {
    const ApiResponse refused = call("POST", route, kBody);
    expectAnswer(refused, 503, R"({"error":"the server is shutting down: try again in a moment"})");
    EXPECT_EQ(headersOf(refused), "Retry-After: 1\n");
  }
  EXPECT_EQ(queued(), 0U);
}

TEST_F(SubmitCallsTest, ARunBeyondTheRateReachesNoFilter) {
  CountingFilter counting;
  filter(counting.pool);
  const ApiResponse refused = callTooOften(Operation::run, "POST", "/v2/ep/run", kBody);
  expectAnswer(refused, 429, tooOften("run"));
  EXPECT_EQ(headersOf(refused), "Retry-After: 2\n");
  EXPECT_EQ(counting.asked, 0);
  EXPECT_EQ(queued(), 0U);
  EXPECT_EQ(call("POST", "/v2/ep/run", kBody).status, 200);
  EXPECT_EQ(counting.asked, 1);
}

TEST_F(SubmitCallsTest, TheVerdictOfAFilterIsTheAnswer) {
  Decision decision = Accept{};
  test::DecidingFilters filters([&decision](const AdmissionRequest&) { return decision; });
  FilterPool pool("plugin/judge", filters, "");
  filter(pool);
  decision = Reject{"input.a is too small"};
  expectAnswer(call("POST", "/v2/ep/run", kBody), 400, R"({"error":"input.a is too small"})");
  decision = Refuse{403, "not for you", Millis(0)};
  expectAnswer(call("POST", "/v2/ep/run", kBody), 403, R"({"error":"not for you"})");
  decision = Refuse{429, "the quota is used up", Millis(2'001)};
  const ApiResponse tooMany = call("POST", "/v2/ep/run", kBody);
  expectAnswer(tooMany, 429, R"({"error":"the quota is used up"})");
  EXPECT_EQ(headersOf(tooMany), "Retry-After: 3\n");
  decision = Refuse{500, "broken", Millis(0)};
  EXPECT_THROW((void)call("POST", "/v2/ep/run", kBody), FilterError);
  EXPECT_EQ(queued(), 0U);
  decision = Replace{R"({"b":2})", {}};
  EXPECT_EQ(call("POST", "/v2/ep/run", kBody).status, 200);
  EXPECT_EQ(storage_.claim().input, R"({"b":2})");
}

TEST_F(SubmitCallsTest, AFilterJudgesARepeatedJobOnce) {
  CountingFilter counting;
  filter(counting.pool);
  const ApiResponse first = submit("k");
  expectAnswer(submit("k"), 200, first.body);
  EXPECT_EQ(submit("k", R"({"input":{}})").status, 400);
  EXPECT_EQ(counting.asked, 1);
}

TEST_F(SubmitCallsTest, RunsyncAnswersTheEndedJob) {
  auto answer = callAndWait("POST", "/v2/ep/runsync", Millis(5'000), kBody);
  const ClaimedJob job = storage_.claim();
  EXPECT_THAT(job.lease.job, MatchesRegex("sync-[0-9a-f-]{36}-u1"));
  (void)reports_.finish(job.lease, Completed{job.input}, false);
  expectAnswer(testkit::resultOf("the answer of /runsync", answer), 200,
               R"({"id":")" + job.lease.job +
                   R"(","status":"COMPLETED","delayTime":0,"executionTime":0,"workerId":"w","output":{"a" : 1.50}})");
}

TEST_F(SubmitCallsTest, RunsyncAnswersTheQueuedJobAtTheEndOfTheWait) {
  auto answer = callAndWait("POST", "/v2/ep/runsync", Millis(5'000), kBody);
  storage_.clock.advance(Millis(5'000));
  const ApiResponse response = testkit::resultOf("the answer of /runsync", answer);
  expectAnswer(response, 200, R"({"id":")" + idOf(response) + R"(","status":"IN_QUEUE"})");
  EXPECT_EQ(queued(), 1U);
}

// A refusal would make the client submit the job a second time.
TEST_F(SubmitCallsTest, RunsyncWithoutRoomForTheOutputWaitsAndThenAnswersAsIfTheJobWentOn) {
  const auto others = reserveAnswers(0);
  auto answer = callAndWait("POST", "/v2/ep/runsync", Millis(5'000), kBody);
  (void)reports_.finish(storage_.claim().lease, Completed{'"' + std::string(2UL << 20, 'x') + '"'}, false);
  storage_.clock.awaitWaiter(Millis(1), Millis(100));
  storage_.clock.advance(Millis(5'000));
  const ApiResponse response = testkit::resultOf("the answer of /runsync", answer);
  expectAnswer(response, 200, R"({"id":")" + idOf(response) + R"(","status":"IN_QUEUE"})");
}

TEST_F(SubmitCallsTest, ARepeatedRunsyncWaitsForTheFirstJob) {
  const auto all = waiting_.reserve(4);  // no call waits
  const ApiResponse first = submit("k", kBody, "/v2/ep/runsync");
  EXPECT_THAT(first.body, HasSubstr("IN_QUEUE"));
  const ClaimedJob job = storage_.claim();
  (void)reports_.finish(job.lease, Completed{"7"}, false);
  const ApiResponse again = submit("k", kBody, "/v2/ep/runsync");
  EXPECT_EQ(idOf(again), idOf(first));
  EXPECT_THAT(again.body, EndsWith(R"("output":7})"));
  EXPECT_EQ(submit("k", R"({"input":{}})", "/v2/ep/runsync").status, 400);
}

TEST_F(SubmitCallsTest, IgnoredKeysAreNamedInAWarning) {
  const auto warningOf = [this](const std::string& body) {
    const int status = call("POST", "/v2/ep/run", body).status;
    return std::pair(status, warning_);
  };
  EXPECT_EQ(warningOf(kBody), std::pair(200, std::string()));
  EXPECT_EQ(warningOf(R"({"input":{},"a\"\u00e4":1,"b":2})"),
            std::pair(200, std::string("299 jobq \"unknown keys were ignored: a???, b\"")));
  EXPECT_EQ(warningOf(R"({"input":{},"a":1,"b":2,"c":3,"d":4,"e":5})").second,
            "299 jobq \"unknown keys were ignored: a, b, c and 2 more\"");
  EXPECT_EQ(warningOf(R"({"inputs":{}})").first, 400);
  EXPECT_EQ(call("POST", "/sdk/v2/ep/run", R"({"input":{},"inputs":1})").status, 200);
}

TEST_F(SubmitCallsTest, AWrongWaitStoresNoJob) {
  expectAnswer(call("POST", "/v2/ep/runsync", kBody, {{"wait", "10"}}), 400,
               R"({"error":"wait must be an integer from 1000 to 300000; you sent 10: milliseconds?"})");
  EXPECT_EQ(queued(), 0U);
}

TEST_F(SubmitCallsTest, AFailingStorageIsNoAnswerUntilTheJobIsStored) {
  storage_.faults.failNext("jobs.insert");
  EXPECT_THROW((void)call("POST", "/v2/ep/run", kBody), StorageError);
  storage_.faults.failNext("jobs.insert");
  EXPECT_THROW((void)call("POST", "/v2/ep/runsync", kBody), StorageError);
  EXPECT_EQ(queued(), 0U);
  const auto all = waiting_.reserve(4);  // no call waits
  storage_.faults.failNext("jobs.find");
  const ApiResponse response = call("POST", "/v2/ep/runsync", kBody);
  expectAnswer(response, 200, R"({"id":")" + idOf(response) + R"(","status":"IN_QUEUE"})");
  EXPECT_EQ(queued(), 1U) << "the client must not send the stored job again";
}

}  // namespace
}  // namespace jobq

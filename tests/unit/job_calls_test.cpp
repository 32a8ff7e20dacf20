// Tests of the calls about one job without a socket: /status, /status-sync, /cancel and /retry
// (core/http/api/queue/job_calls.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "jobq/error.h"
#include "queue_routes_fixture.h"

namespace jobq {
namespace {

using test::expectAnswer;
using testing::ElementsAre;
using testing::SizeIs;

class JobCallsTest : public testing::Test, protected test::QueueRoutesFixture {};

TEST_F(JobCallsTest, AQueuedJobHasAReasonAndAPosition) {
  for (const char* id : {"a", "b", "c"}) storage_.insert(id);
  expectAnswer(call("GET", "/v2/ep/status/b"), 200,
               R"({"id":"b","status":"IN_QUEUE","queueReason":"no_workers","queuePosition":2})");
  EXPECT_EQ(scope_, Scope::client | Scope::submit | Scope::read);
  draining_ = true;
  expectAnswer(call("POST", "/v2/ep/status/a"), 200,
               R"({"id":"a","status":"IN_QUEUE","queueReason":"draining","queuePosition":1})");
}

TEST_F(JobCallsTest, ThePositionIsCountedUpTo101) {
  for (int i = 0; i < 105; ++i) storage_.insert("j" + std::to_string(i));
  for (const auto& [id, position] : {std::pair("j99", "100"), std::pair("j100", "101"), std::pair("j104", "101")}) {
    expectAnswer(call("GET", std::string("/v2/ep/status/") + id), 200,
                 R"({"id":")" + std::string(id) +
                     R"(","status":"IN_QUEUE","queueReason":"no_workers","queuePosition":)" + position + "}");
  }
}

TEST_F(JobCallsTest, AStatusFollowsTheJob) {
  storage_.insert("a");
  storage_.clock.advance(Millis(7));
  const LeaseRef lease = claim();
  expectAnswer(call("GET", "/v2/ep/status/a"), 200,
               R"({"id":"a","status":"IN_PROGRESS","delayTime":7,"workerId":"w"})");
  (void)storage_->leases().progress(lease, "50");
  expectAnswer(call("GET", "/v2/ep/status/a"), 200,
               R"({"id":"a","status":"IN_PROGRESS","delayTime":7,"workerId":"w","output":50})");
  storage_.clock.advance(Millis(30));
  (void)reports_.finish(lease, Completed{"{\"b\" : 1.50}"}, false);
  expectAnswer(
      call("GET", "/v2/ep/status/a"), 200,
      R"({"id":"a","status":"COMPLETED","delayTime":7,"executionTime":30,"workerId":"w","output":{"b" : 1.50}})");
  runJob("f", Failed{"no \"luck\"", "7"});
  expectAnswer(
      call("GET", "/sdk/v2/ep/status/f"), 200,
      R"({"id":"f","status":"FAILED","delayTime":0,"executionTime":0,"workerId":"w","error":"no \"luck\"","output":7})");
}

TEST_F(JobCallsTest, AnUnknownJobIs404) {
  expectAnswer(call("GET", "/v2/ep/status/none"), 404, noSuchJob("none"));
  expectAnswer(call("GET", "/v2/ep/status/none", "", {{"ttl", "60000"}}), 404, noSuchJob("none"));
  expectAnswer(call("GET", "/v2/ep/status-sync/none"), 404, noSuchJob("none"));
  expectAnswer(call("POST", "/v2/ep/cancel/none"), 404, noSuchJob("none"));
  expectAnswer(call("POST", "/v2/ep/retry/none"), 404, noSuchJob("none"));
  storage_.insert("a", "other");
  expectAnswer(call("GET", "/v2/ep/status/a"), 404, noSuchJob("a"));
  EXPECT_EQ(storage_.stateOf("a", "other"), JobState::inQueue);
}

TEST_F(JobCallsTest, AStatusMayMoveTheExpiry) {
  runJob("a", Completed{"1"});
  for (const char* wrong : {"-1", "x", "1.5", "", " 1", "9007199254740993"}) {
    expectAnswer(call("GET", "/v2/ep/status/a", "", {{"ttl", wrong}}), 400,
                 R"({"error":"ttl must be an integer from 0 to 9007199254740992"})");
  }
  expectAnswer(call("GET", "/v2/ep/status/a", "", {{"ttl", "1"}, {"ttl", "2"}}), 400,
               R"({"error":"ttl appears more than once in the query: send it once"})");
  EXPECT_EQ(call("GET", "/v2/ep/status/a", "", {{"ttl", "7200000"}}).status, 200);
  storage_.clock.advance(Millis(7'199'999));
  EXPECT_EQ(call("GET", "/v2/ep/status/a").status, 200) << "the 30 minutes of the submission are over";
  storage_.clock.advance(Millis(1));
  expectAnswer(call("GET", "/v2/ep/status/a"), 404, noSuchJob("a"));
}

TEST_F(JobCallsTest, ALargeOutputDrawsOnTheMemoryForAnswers) {
  const std::string large = '"' + std::string(2UL << 20, 'x') + '"';
  runJob("a", Completed{large});
  const std::string whole =
      R"({"id":"a","status":"COMPLETED","delayTime":0,"executionTime":0,"workerId":"w","output":)" + large + "}";
  EXPECT_TRUE(call("GET", "/v2/ep/status/a").body == whole);
  EXPECT_EQ(answerMemory_.left(), kAnswers) << "the answer has been sent";
  // The output and its copy in the answer are there together.
  const auto all = reserveAnswers(2 * large.size() - 1);
  const ApiResponse refused = call("GET", "/v2/ep/status/a");
  expectAnswer(refused, 503,
               R"({"error":"too many bytes of large answers are being sent: the limit is 536870912 (fixed); )"
               R"(ask for the status of job a again in a moment"})");
  EXPECT_EQ(headersOf(refused), "Retry-After: 1\n");
}

// The memory is drawn before the storage reads the output.
TEST_F(JobCallsTest, AnOutputIsReadWhenThereIsRoom) {
  const std::string large = '"' + std::string(2UL << 20, 'x') + '"';
  runJob("a", Completed{large});
  AnswerRoom room;
  room.use(answerMemory_, "ep");
  const auto all = reserveAnswers(2 * large.size() - 1);
  const FoundJob refused = jobs_.find({"ep", "a"}, &room);
  EXPECT_FALSE(refused.hasRoom);
  EXPECT_EQ(refused.job->output, "");
  EXPECT_EQ(room.held(), 0U);
  AnswerRoom another;
  another.use(answerMemory_, "other");
  EXPECT_EQ(jobs_.find({"ep", "a"}, &another).job->output, large) << "each endpoint has a separate share";
  EXPECT_EQ(another.held(), 2 * large.size());
}

TEST_F(JobCallsTest, StatusSyncWaitsForRoom) {
  storage_.insert("a");
  auto others = reserveAnswers(0);
  auto answer = callAndWait("GET", "/v2/ep/status-sync/a", Millis(5'000));
  (void)reports_.finish(claim(), Completed{'"' + std::string(2UL << 20, 'x') + '"'}, false);
  storage_.clock.awaitWaiter(Millis(1), Millis(100));
  others.release();
  storage_.clock.advance(Millis(100));
  EXPECT_EQ(testkit::resultOf("the answer of /status-sync", answer).status, 200);
}

TEST_F(JobCallsTest, AWaitingStatusSyncHoldsNoMemoryForAProgress) {
  storage_.insert("a");
  const LeaseRef lease = claim();
  (void)storage_->leases().progress(lease, '"' + std::string(1UL << 20, 'x') + '"');
  auto answer = callAndWait("GET", "/v2/ep/status-sync/a", Millis(5'000));
  EXPECT_EQ(reserveAnswers(0).amount(), kAnswersOfEndpoint);
  (void)reports_.finish(lease, Completed{"7"}, false);
  EXPECT_EQ(testkit::resultOf("the answer of /status-sync", answer).status, 200);
}

TEST_F(JobCallsTest, StatusSyncAnswersAtTheEndOfTheJob) {
  storage_.insert("a");
  auto answer = callAndWait("GET", "/v2/ep/status-sync/a", Millis(5'000));
  EXPECT_EQ(waiting_.left(), 3U) << "a waiting call has a place";
  (void)reports_.finish(claim(), Completed{"7"}, false);
  const ApiResponse response = testkit::resultOf("the answer of /status-sync", answer);
  expectAnswer(response, 200,
               R"({"id":"a","status":"COMPLETED","delayTime":0,"executionTime":0,"workerId":"w","output":7})");
  EXPECT_EQ(waiting_.left(), 4U);
}

TEST_F(JobCallsTest, StatusSyncAnswersAtTheEndOfTheWait) {
  storage_.insert("a");
  auto answer = callAndWait("GET", "/v2/ep/status-sync/a", Millis(5'000));
  storage_.clock.advance(Millis(5'000));
  expectAnswer(testkit::resultOf("the answer of /status-sync", answer), 200,
               R"({"id":"a","status":"IN_QUEUE","queueReason":"no_workers","queuePosition":1})");
}

TEST_F(JobCallsTest, StatusSyncDoesNotWaitWithoutAPlace) {
  storage_.insert("a");
  const auto all = waiting_.reserve(4);
  expectAnswer(call("GET", "/v2/ep/status-sync/a"), 200,
               R"({"id":"a","status":"IN_QUEUE","queueReason":"no_workers","queuePosition":1})");
}

TEST_F(JobCallsTest, AWrongWaitIsRefusedOnTheFirstMountAndBoundedOnTheOther) {
  storage_.insert("a");
  const auto all = waiting_.reserve(4);  // no call waits
  for (const char* wrong : {"999", "300001", "-1"}) {
    expectAnswer(call("GET", "/v2/ep/status-sync/a", "", {{"wait", wrong}}), 400,
                 R"({"error":"wait must be an integer from 1000 to 300000"})");
    EXPECT_EQ(call("GET", "/sdk/v2/ep/status-sync/a", "", {{"wait", wrong}}).status, 200);
  }
  expectAnswer(call("GET", "/sdk/v2/ep/status-sync/a", "", {{"wait", "soon"}}), 400,
               R"({"error":"wait must be an integer from 1000 to 300000"})");
}

TEST_F(JobCallsTest, ACancelledJobIsCancelledAtOnce) {
  storage_.insert("queued");
  expectAnswer(call("POST", "/v2/ep/cancel/queued"), 200, R"({"id":"queued","status":"CANCELLED"})");
  EXPECT_THAT(runs_.stopped, SizeIs(0)) << "no worker has had the job";
  storage_.insert("running");
  const LeaseRef lease = claim();
  expectAnswer(call("POST", "/v2/ep/cancel/running"), 200, R"({"id":"running","status":"CANCELLED"})");
  EXPECT_THAT(runs_.stopped, ElementsAre(lease)) << "the handler is stopped";
  runJob("done", Completed{"1"});
  expectAnswer(call("POST", "/v2/ep/cancel/done"), 200, R"({"id":"done","status":"COMPLETED"})");
  expectAnswer(call("POST", "/v2/ep/cancel/running"), 200, R"({"id":"running","status":"CANCELLED"})");
  EXPECT_THAT(runs_.stopped, ElementsAre(lease, lease)) << "a repeated call does all of the first call";
}

TEST_F(JobCallsTest, AFailedJobIsQueuedAgain) {
  runJob("a", Failed{"no luck", ""});
  expectAnswer(call("POST", "/v2/ep/retry/a"), 200, R"({"id":"a","status":"IN_QUEUE"})");
  EXPECT_EQ(storage_.stateOf("a"), JobState::inQueue);
  expectAnswer(call("POST", "/v2/ep/retry/a"), 400,
               R"({"error":"job a is IN_QUEUE: only a FAILED or TIMED_OUT job can be retried"})");
  (void)claim();
  expectAnswer(call("POST", "/v2/ep/retry/a"), 400,
               R"({"error":"job a is IN_PROGRESS: only a FAILED or TIMED_OUT job can be retried"})");
  draining_ = true;
  const ApiResponse refused = call("POST", "/v2/ep/retry/a");
  expectAnswer(refused, 503, R"({"error":"the server is shutting down: try again in a moment"})");
  EXPECT_EQ(headersOf(refused), "Retry-After: 1\n");
}

TEST_F(JobCallsTest, ACallBeyondTheRateChangesNothing) {
  storage_.insert("a");
  const ApiResponse cancelled = callTooOften(Operation::cancel, "POST", "/v2/ep/cancel/a");
  expectAnswer(cancelled, 429, tooOften("cancel"));
  EXPECT_EQ(headersOf(cancelled), "Retry-After: 2\n") << "1.5 s, rounded up";
  expectAnswer(callTooOften(Operation::status, "GET", "/v2/ep/status/a"), 429, tooOften("status"));
  expectAnswer(callTooOften(Operation::statusSync, "GET", "/v2/ep/status-sync/a"), 429, tooOften("statusSync"));
  expectAnswer(callTooOften(Operation::cancel, "POST", "/v2/ep/retry/a"), 429, tooOften("cancel"));
  EXPECT_EQ(storage_.stateOf("a"), JobState::inQueue);
}

TEST_F(JobCallsTest, AFailingStorageIsNoAnswer) {
  storage_.insert("a");
  storage_.faults.failNext("jobs.find");
  EXPECT_THROW((void)call("GET", "/v2/ep/status/a"), StorageError);
  storage_.faults.failNext("jobs.cancel");
  EXPECT_THROW((void)call("POST", "/v2/ep/cancel/a"), StorageError);
  EXPECT_EQ(storage_.stateOf("a"), JobState::inQueue);
}

}  // namespace
}  // namespace jobq

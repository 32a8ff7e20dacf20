// Tests of calls of the queue API with rules about time and workers: purge, ttl, idempotency keys, stuck workers.
#include "core/base/clock.h"
#include "server_fixture.h"

namespace {

using namespace jobq;
using testing::HasSubstr;

constexpr const char* kFew =
    "storage = memory\nendpoint.t.image = plugin/trial\nendpoint.t.workersMax = 1\nendpoint.t.stopGrace = 5s\n"
    "endpoint.p.image = plugin/echo\nendpoint.p.workersMax = 0\nendpoint.e.image = plugin/echo\n";

class ServerCallsTest : public ServerTest {
 protected:
  ServerCallsTest() { open(kFew); }

  Answer runWith(const std::string& idempotency, const std::string& target, const std::string& body) {
    extra_ = {{"Idempotency-Key", idempotency}};
    Answer answer = call("POST", target, body);
    extra_.clear();
    return answer;
  }
  bool healthSays(const std::string& text) const {
    return call("GET", "/v2/t/health").body.find(text) != std::string::npos;
  }
  std::string stubborn(Millis sleep) {
    return run("t", "{\"input\":{\"ignoreStop\":true,\"sleepMs\":" + std::to_string(sleep.count()) + "}}").field("id");
  }
};

TEST_F(ServerCallsTest, APurgeAnswersTheCallersOfThePurgedJobs) {
  Answer sync;
  Answer stream;
  std::thread first([&] { sync = call("POST", "/v2/p/runsync?wait=300000", R"({"input":{}})"); });
  clock_.awaitWaiter(Millis(300'000), Millis(300'000), 1);
  const std::string id = run("p", R"({"input":{}})").field("id");
  std::thread second([&] { stream = call("GET", "/v2/p/stream/" + id + "?wait=299000"); });
  clock_.awaitWaiter(Millis(299'000), Millis(299'000));  // the earliest deadline of all waiting callers
  const Answer purged = call("POST", "/v2/p/purge-queue");
  EXPECT_EQ(purged.body, R"({"removed":2,"status":"completed"})");
  testkit::join("the caller of /runsync", first);
  testkit::join("the caller of /stream", second);
  EXPECT_EQ(sync.status, 404);
  EXPECT_EQ(stream.status, 404);
  EXPECT_EQ(status("p", id).status, 404);
  EXPECT_EQ(call("POST", "/v2/p/purge-queue").body, R"({"removed":0,"status":"completed"})");
}

TEST_F(ServerCallsTest, APurgeLeavesJobsInProgressAlone) {
  const std::string running = run("t", R"({"input":{"sleepMs":7000}})").field("id");
  awaitState("t", running, "IN_PROGRESS");
  const std::string waiting = run("t", R"({"input":{}})").field("id");
  EXPECT_EQ(call("POST", "/v2/t/purge-queue").field("removed"), "1");
  EXPECT_EQ(status("t", waiting).status, 404);
  clock_.awaitWaiter(Millis(7'000), Millis(7'000));
  clock_.advance(Millis(7'000));
  EXPECT_EQ(call("GET", "/v2/t/status-sync/" + running).field("status"), "COMPLETED");
}

// A queued job that expires answers its waiting callers 404 at once, without their wait having elapsed.
TEST_F(ServerCallsTest, AnExpiryAnswersWaitingCallers) {
  Answer answer;
  std::thread caller(
      [&] { answer = call("POST", "/v2/p/runsync?wait=300000", R"({"input":{},"policy":{"ttl":10000}})"); });
  clock_.awaitWaiter(Millis(300'000), Millis(300'000));
  clock_.advance(Millis(11'000));
  testkit::join("the caller of /runsync", caller);
  EXPECT_EQ(answer.status, 404);
}

// core/http/API.md, "/status": `ttl` replaces the expiry with now + ttl, at least 1 s from now, and survives the end of
// the job.
TEST_F(ServerCallsTest, StatusTtlSetsTheExpiry) {
  const std::string done = call("POST", "/v2/e/runsync", R"({"input":{}})").field("id");
  EXPECT_EQ(call("GET", "/v2/e/status/" + done + "?ttl=6000").field("status"), "COMPLETED") << "still shown";
  clock_.advance(Millis(5'999));
  EXPECT_EQ(status("e", done).status, 200);
  clock_.advance(Millis(1));
  EXPECT_EQ(status("e", done).status, 404);

  const std::string floor = call("POST", "/v2/e/runsync", R"({"input":{}})").field("id");
  EXPECT_EQ(call("POST", "/v2/e/status/" + floor + "?ttl=0").status, 200);
  clock_.advance(Millis(999));
  EXPECT_EQ(status("e", floor).status, 200);
  clock_.advance(Millis(1));
  EXPECT_EQ(status("e", floor).status, 404);
}

TEST_F(ServerCallsTest, WrongOrRepeatedParametersAreNamed) {
  const std::string id = run("p", R"({"input":{}})").field("id");
  for (const char* query : {"?ttl=-5", "?ttl=1.5", "?ttl=", "?ttl=6000&ttl=7000"}) {
    const Answer answer = call("GET", "/v2/p/status/" + id + query);
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_THAT(answer.field("error"), testing::StartsWith("ttl ")) << query;
  }
  EXPECT_EQ(call("POST", "/v2/p/runsync?wait=1000&wait=2000", R"({"input":{}})").field("error"),
            "wait appears more than once in the query: send it once");
  EXPECT_EQ(call("GET", "/v2/p/requests?status=FAILED&status=IN_QUEUE").status, 400);
  EXPECT_TRUE(fromIso8601(call("GET", "/v1/endpoints/p").field("createdAt")))
      << "an endpoint of the file has a time too";
}

TEST_F(ServerCallsTest, StatusTtlReachesSevenDaysFromTheSubmissionAtMost) {
  const std::string id = run("p", R"({"input":{}})").field("id");
  clock_.advance(Millis(3'600'000));
  EXPECT_EQ(call("GET", "/v2/p/status/" + id + "?ttl=99999999999").status, 200);
  clock_.advance(Millis(604'800'000 - 3'600'000 - 1));
  EXPECT_EQ(status("p", id).status, 200);
  clock_.advance(Millis(1));
  EXPECT_EQ(status("p", id).status, 404);
}

TEST_F(ServerCallsTest, StatusTtlSurvivesCompletionAndOutlivesRetention) {
  const std::string id = run("t", R"({"input":{"sleepMs":7000}})").field("id");
  awaitState("t", id, "IN_PROGRESS");
  EXPECT_EQ(call("GET", "/v2/t/status/" + id + "?ttl=7200000").status, 200);
  clock_.awaitWaiter(Millis(7'000), Millis(7'000));
  clock_.advance(Millis(7'000));
  EXPECT_EQ(call("GET", "/v2/t/status-sync/" + id).field("status"), "COMPLETED");
  clock_.advance(Millis(7'192'999));
  EXPECT_EQ(status("t", id).status, 200) << "retention alone would be half an hour";
  clock_.advance(Millis(1));
  EXPECT_EQ(status("t", id).status, 404);
}

TEST_F(ServerCallsTest, AWrongTtlIsNamed) {
  const std::string id = run("p", R"({"input":{}})").field("id");
  for (const char* ttl : {"soon", "", "1.5", "1e3", "1s"}) {
    const Answer refused = call("GET", "/v2/p/status/" + id + "?ttl=" + ttl);
    EXPECT_EQ(refused.status, 400) << ttl;
    EXPECT_THAT(refused.body, HasSubstr("ttl"));
  }
  EXPECT_EQ(call("GET", "/v2/p/status/nobody?ttl=5000").status, 404);
}

// core/http/API.md, "Idempotency key": within 24 hours the same idempotency key, endpoint and API key get the answer of
// the first job.
TEST_F(ServerCallsTest, AKeyGivesTheFirstAnswerForADay) {
  const std::string body = R"({"input":{"n":1}})";
  const Answer first = runWith("k", "/v2/e/run", body);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(runWith("k", "/v2/e/run", body).body, first.body);
  const Answer other = runWith("k", "/v2/e/run", R"({"input":{"n":2}})");
  EXPECT_EQ(other.status, 400);
  EXPECT_THAT(other.body, HasSubstr("Idempotency-Key"));
  EXPECT_NE(runWith("k", "/v2/p/run", body).field("id"), first.field("id")) << "the call is for a different endpoint";
  EXPECT_NE(runWith("l", "/v2/e/run", body).field("id"), first.field("id")) << "the idempotency key is different";
  EXPECT_EQ(call("GET", "/v2/e/health").field("jobs").find("\"completed\":3"), std::string::npos);
  clock_.advance(Millis(86'400'000 - 1));
  EXPECT_EQ(runWith("k", "/v2/e/run", body).field("id"), first.field("id")) << "the key outlives the job";
  clock_.advance(Millis(1));
  EXPECT_NE(runWith("k", "/v2/e/run", body).field("id"), first.field("id"));
}

TEST_F(ServerCallsTest, ARepeatedRunsyncWaitsForTheFirstJob) {
  const std::string body = R"({"input":{"n":1}})";
  const Answer first = runWith("k", "/v2/e/runsync", body);
  EXPECT_EQ(first.field("status"), "COMPLETED");
  EXPECT_EQ(runWith("k", "/v2/e/runsync", body).body, first.body);
  EXPECT_EQ(runWith("k", "/v2/e/runsync", R"({"input":{}})").status, 400);
  clock_.advance(Millis(60'000));
  const Answer gone = runWith("k", "/v2/e/runsync", body);
  EXPECT_EQ(gone.status, 404) << "the result has expired, and the job does not run twice";
}

TEST_F(ServerCallsTest, ADifferentApiKeyMakesADifferentSubmission) {
  const std::string body = R"({"input":{"n":1}})";
  const std::string first = runWith("k", "/v2/e/run", body).field("id");
  key_ = call("POST", "/v1/keys", R"({"name":"n","scopes":["client"]})").field("key");
  EXPECT_NE(runWith("k", "/v2/e/run", body).field("id"), first);
}

TEST_F(ServerCallsTest, AMalformedIdempotencyKeyIsRefused) {
  EXPECT_EQ(runWith(std::string(255, 'k'), "/v2/e/run", R"({"input":{}})").status, 200);
  for (const std::string& key : {std::string(256, 'k'), std::string("a b"), std::string("\xc3\xa9")}) {
    const Answer refused = runWith(key, "/v2/e/run", R"({"input":{}})");
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("Idempotency-Key"));
  }
}

// core/http/API.md, "/cancel": after stopGrace the worker is logged as stuck and replaced; the late result is ignored.
TEST_F(ServerCallsTest, AStuckSlotIsReplacedAndTheLateResultIgnored) {
  const std::string stuck = stubborn(Millis(60'000));
  awaitState("t", stuck, "IN_PROGRESS");
  clock_.awaitWaiter(Millis(60'000), Millis(60'000));
  EXPECT_EQ(call("POST", "/v2/t/cancel/" + stuck).field("status"), "CANCELLED");
  const std::string next = run("t", R"({"input":{}})").field("id");
  clock_.advance(Millis(4'999));
  EXPECT_TRUE(healthSays("\"running\":1")) << "a stuck handler keeps the slot during the grace";
  EXPECT_EQ(status("t", next).field("status"), "IN_QUEUE");
  clock_.advance(Millis(1));
  EXPECT_EQ(call("GET", "/v2/t/status-sync/" + next).field("status"), "COMPLETED");
  EXPECT_TRUE(healthSays("\"unhealthy\":1"));
  clock_.advance(Millis(55'000));
  awaitHealth("t", "\"unhealthy\":0");
  EXPECT_EQ(status("t", stuck).field("status"), "CANCELLED");
  EXPECT_EQ(status("t", stuck).field("output"), "absent");
}

// At most maxStuck workers (workersMax unless set) are replaced. The endpoint then claims no job until a stuck worker
// ends.
TEST_F(ServerCallsTest, TooManyStuckHandlersStopTheEndpoint) {
  for (int round = 0; round < 2; ++round) {
    const std::string stuck = stubborn(Millis(60'000));
    clock_.awaitWaiter(Millis(60'000), Millis(60'000));  // the handler has begun: a job cancelled earlier never runs
    EXPECT_EQ(call("POST", "/v2/t/cancel/" + stuck).field("status"), "CANCELLED");
    clock_.advance(Millis(5'000));
    awaitHealth("t", "\"unhealthy\":" + std::to_string(round + 1));
  }
  const std::string next = run("t", R"({"input":{}})").field("id");
  EXPECT_TRUE(healthSays("\"inQueue\":1"));
  EXPECT_TRUE(healthSays("\"running\":0"));
  clock_.advance(Millis(55'000));
  EXPECT_EQ(call("GET", "/v2/t/status-sync/" + next).field("status"), "COMPLETED");
}

// A shutdown waits for results with a possible reader; a stopped job has no result.
TEST_F(ServerCallsTest, AShutdownDoesNotDrainForAStuckHandler) {
  const std::string stuck = stubborn(Millis(8'000));
  awaitState("t", stuck, "IN_PROGRESS");
  clock_.awaitWaiter(Millis(8'000), Millis(8'000));
  EXPECT_EQ(call("POST", "/v2/t/cancel/" + stuck).field("status"), "CANCELLED");
  clock_.advance(Millis(5'000));
  awaitHealth("t", "\"unhealthy\":1");
  std::thread stopping([&] { EXPECT_TRUE(application_->stop()) << "the handler ended within the grace"; });
  clock_.awaitWaiter(Millis(5'000), Millis(5'000));  // stopGrace, instead of the 10 s of server.drain
  clock_.advance(Millis(3'000));
  testkit::join("the shutdown", stopping);
}

TEST_F(ServerCallsTest, ACancelDuringTheDrainEndsTheDrain) {
  const std::string stuck = stubborn(Millis(4'000));
  awaitState("t", stuck, "IN_PROGRESS");
  clock_.awaitWaiter(Millis(4'000), Millis(4'000));
  std::thread stopping([&] { EXPECT_TRUE(application_->stop()) << "the handler ended within the grace"; });
  clock_.awaitWaiter(Millis(10'000), Millis(10'000));  // server.drain
  EXPECT_EQ(call("POST", "/v2/t/cancel/" + stuck).field("status"), "CANCELLED");
  clock_.awaitWaiter(Millis(5'000), Millis(5'000));  // stopGrace, although no time has passed
  clock_.advance(Millis(4'000));
  testkit::join("the shutdown", stopping);
}

// The execution timeout and the ttl stop a handler like a cancel.
TEST_F(ServerCallsTest, AHandlerIgnoringTheTimeoutIsStuckToo) {
  const std::string body = R"({"input":{"ignoreStop":true,"sleepMs":60000},"policy":{"executionTimeout":5000}})";
  const std::string late = run("t", body).field("id");
  clock_.awaitWaiter(Millis(60'000), Millis(60'000));  // the handler has begun: a job late before the begin never runs
  clock_.advance(Millis(5'000));
  awaitState("t", late, "TIMED_OUT");
  // The sweeper stores TIMED_OUT and then stops the handler. The grace begins with the stop.
  clock_.awaitWaiter(Millis(5'000), Millis(5'000));
  clock_.advance(Millis(5'000));
  awaitHealth("t", "\"unhealthy\":1");
  clock_.advance(Millis(50'000));
  awaitHealth("t", "\"unhealthy\":0");
  EXPECT_EQ(status("t", late).field("status"), "TIMED_OUT");
}

}  // namespace

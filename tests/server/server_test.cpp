// Tests of rules about time, workers and shutdown, on the whole server with the manual clock.
#include "server_fixture.h"
#include "testkit/thrown_text.h"

namespace {

using namespace jobq;
using testing::HasSubstr;

constexpr const char* kTrial =
    "storage = memory\nendpoint.t.image = plugin/trial\nendpoint.t.workersMax = 2\n"
    "endpoint.e.image = plugin/echo\nendpoint.r.image = some/remote\n";

/// A step of the clock for jobs of 1,500 ms. The scheduler of webhooks pauses as long as its last pass took: after a
/// step of 1,500 ms in its pass, the test would take that pause for the next job.
constexpr Millis kPastTheSleep{1'501};

TEST_F(ServerTest, AJobGoesTheWholeWay) {
  open(kTrial);
  const Answer accepted = run("e", R"({"input":{"b":1.0,"a":-0}})");
  EXPECT_EQ(accepted.status, 200);
  EXPECT_EQ(accepted.field("status"), "IN_QUEUE");
  const Answer done = call("GET", "/v2/e/status-sync/" + accepted.field("id"));
  EXPECT_EQ(done.field("status"), "COMPLETED");
  EXPECT_EQ(done.field("output"), R"({"b":1.0,"a":-0})");
  EXPECT_EQ(done.field("delayTime"), "0");
  EXPECT_EQ(done.field("executionTime"), "0");
  EXPECT_EQ(done.field("retries"), "absent");
  EXPECT_EQ(done.field("input"), "absent");
}

TEST_F(ServerTest, TimesAreCountedOnTheServersClock) {
  open(kTrial);
  const std::string id = run("t", R"({"input":{"sleepMs":7000}})").field("id");
  awaitState("t", id, "IN_PROGRESS");
  EXPECT_EQ(status("t", id).field("executionTime"), "absent") << "only final answers have the field";
  EXPECT_EQ(status("t", id).field("delayTime"), "0");
  clock_.awaitWaiter(Millis(7'000), Millis(7'000));
  clock_.advance(Millis(7'000));
  const Answer done = call("GET", "/v2/t/status-sync/" + id);
  EXPECT_EQ(done.field("status"), "COMPLETED");
  EXPECT_EQ(done.field("executionTime"), "7000");
}

TEST_F(ServerTest, RunsyncAnswersTheCurrentStateWhenTheWaitElapses) {
  open(kTrial);
  Answer answer;
  std::thread caller([&] { answer = call("POST", "/v2/r/runsync?wait=300000", R"({"input":{}})"); });
  clock_.awaitWaiter(Millis(300'000), Millis(300'000));
  clock_.advance(Millis(300'000));
  testkit::join("the caller of /runsync", caller);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.field("status"), "IN_QUEUE");
  EXPECT_EQ(status("r", answer.field("id")).status, 200) << "the job stays stored";
}

TEST_F(ServerTest, AResultIsGoneAfterTheRetention) {
  open(kTrial);
  const std::string sync = call("POST", "/v2/e/runsync", R"({"input":{}})").field("id");
  const std::string async = run("e", R"({"input":{}})").field("id");
  EXPECT_EQ(call("GET", "/v2/e/status-sync/" + async).field("status"), "COMPLETED");
  clock_.advance(Millis(59'999));
  EXPECT_EQ(status("e", sync).status, 200);
  clock_.advance(Millis(1));
  EXPECT_EQ(status("e", sync).status, 404);
  clock_.advance(Millis(1'740'000 - 1));
  EXPECT_EQ(status("e", async).status, 200);
  clock_.advance(Millis(1));
  EXPECT_EQ(status("e", async).status, 404);
}

TEST_F(ServerTest, AJobPastItsTtlIsGoneEvenWhileRunning) {
  open(kTrial);
  const std::string id = run("t", R"({"input":{"sleepMs":60000},"policy":{"ttl":10000}})").field("id");
  awaitState("t", id, "IN_PROGRESS");
  clock_.awaitWaiter(Millis(60'000), Millis(60'000));
  clock_.advance(Millis(10'000));
  EXPECT_EQ(status("t", id).status, 404);
  // The sweep has stopped the handler: the worker is free again without the remaining 50 seconds.
  awaitHealth("t", "\"idle\":1");
}

TEST_F(ServerTest, AnOverlongJobIsTimedOutAndTheHandlerStopped) {
  open(kTrial);
  const std::string id = run("t", R"({"input":{"sleepMs":60000},"policy":{"executionTimeout":5000}})").field("id");
  awaitState("t", id, "IN_PROGRESS");
  clock_.awaitWaiter(Millis(60'000), Millis(60'000));
  clock_.advance(Millis(5'000));
  awaitState("t", id, "TIMED_OUT");
  EXPECT_THAT(status("t", id).field("error"), HasSubstr("5000 ms"));
  awaitHealth("t", "\"idle\":1");
}

// The sweeper has run at 5,000 ms and runs again at 6,000 ms; the clock stands still after 5,300 ms.
TEST_F(ServerTest, AJobIsTimedOutAtTheDeadlineAndNotAtTheNextSweep) {
  open(kTrial);
  clock_.awaitWaiter(Millis(1'000), Millis(1'000));
  const std::string id = run("t", R"({"input":{"sleepMs":60000},"policy":{"executionTimeout":5300}})").field("id");
  awaitState("t", id, "IN_PROGRESS");
  clock_.awaitWaiter(Millis(60'000), Millis(60'000));
  clock_.advance(Millis(5'000));
  clock_.awaitWaiter(Millis(1'000), Millis(1'000));
  EXPECT_EQ(status("t", id).field("status"), "IN_PROGRESS");
  clock_.advance(Millis(300));
  awaitState("t", id, "TIMED_OUT");
  EXPECT_EQ(status("t", id).field("executionTime"), "5300");
  EXPECT_EQ(status("t", id).field("error"), overTimeError(Millis(5'300)));
  awaitHealth("t", "\"idle\":1");
}

TEST_F(ServerTest, WorkersComeWhileJobsWaitAndLeaveWhenIdle) {
  open(kTrial);
  const auto health = [this] { return call("GET", "/v2/t/health").body; };
  EXPECT_THAT(health(), HasSubstr("\"idle\":0"));
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(run("t", R"({"input":{"sleepMs":1500}})").field("id"));
  awaitHealth("t", "\"running\":2");
  EXPECT_THAT(health(), HasSubstr("\"inQueue\":1")) << "workersMax is 2";
  clock_.awaitWaiter(Millis(1'500), Millis(1'500), 2);
  clock_.advance(kPastTheSleep);
  clock_.awaitWaiter(Millis(1'500), Millis(1'500), 1);
  clock_.advance(kPastTheSleep);
  for (const std::string& id : ids) EXPECT_EQ(call("GET", "/v2/t/status-sync/" + id).field("status"), "COMPLETED");
  awaitHealth("t", "\"idle\":2");
  clock_.advance(Millis(5'000));
  awaitHealth("t", "\"idle\":0");
}

TEST_F(ServerTest, ALoneLowPriorityJobStartsNoWorker) {
  open(kTrial);
  const std::string low = run("e", R"({"input":{},"policy":{"lowPriority":true}})").field("id");
  EXPECT_THAT(call("GET", "/v2/e/health").body, HasSubstr("\"inQueue\":1"));
  EXPECT_EQ(status("e", low).field("status"), "IN_QUEUE");
  const std::string normal = call("POST", "/v2/e/runsync", R"({"input":{}})").field("status");
  EXPECT_EQ(normal, "COMPLETED");
  EXPECT_EQ(call("GET", "/v2/e/status-sync/" + low).field("status"), "COMPLETED") << "a running worker takes the job";
}

TEST_F(ServerTest, AnExceptionOfAHandlerFailsTheJob) {
  open(kTrial);
  const Answer thrown = call("POST", "/v2/t/runsync", R"({"input":{"throw":"boom"}})");
  EXPECT_EQ(thrown.status, 200);
  EXPECT_EQ(thrown.field("status"), "FAILED");
  EXPECT_EQ(thrown.field("error"), "boom");
  EXPECT_THAT(call("GET", "/v2/t/health").body, HasSubstr("\"failed\":1"));
}

TEST_F(ServerTest, AKeyExpiresAndARevokedKeyIsRefused) {
  open(kTrial);
  const Answer made = call("POST", "/v1/keys",
                           R"({"name":"n","scopes":["client"],"endpoints":["e"],"expiresAt":"2026-01-01T00:01:00Z"})");
  ASSERT_EQ(made.status, 200) << made.body;
  const std::string key = made.field("key");
  EXPECT_EQ(callWith(key, "GET", "/v2/e/health").status, 200);
  EXPECT_EQ(callWith(key, "GET", "/v2/t/health").status, 401) << "the key is bound to a different endpoint";
  EXPECT_EQ(callWith(key, "GET", "/v1/keys").status, 401) << "the key lacks the scope";
  clock_.advance(Millis(60'000));
  EXPECT_EQ(callWith(key, "GET", "/v2/e/health").status, 401);
  const Answer other = call("POST", "/v1/keys", R"({"name":"o","scopes":["client"]})");
  EXPECT_EQ(callWith(other.field("key"), "GET", "/v2/e/health").status, 200);
  EXPECT_EQ(call("DELETE", "/v1/keys/" + other.field("id")).status, 204);
  EXPECT_EQ(callWith(other.field("key"), "GET", "/v2/e/health").status, 401);
}

TEST_F(ServerTest, ShutdownLetsRunningJobsFinish) {
  open("endpoint.t.image = plugin/trial\n");
  const std::string id = run("t", R"({"input":{"sleepMs":5000}})").field("id");
  awaitState("t", id, "IN_PROGRESS");
  clock_.awaitWaiter(Millis(5'000), Millis(5'000));
  bool clean = false;
  std::thread stopper([&] { clean = application_->stop(); });
  clock_.awaitWaiter(Millis(10'000), Millis(10'000));  // the drain
  EXPECT_EQ(call("GET", "/readyz").status, 503);
  const Answer refused = run("t", R"({"input":{}})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("Retry-After"), "1");
  clock_.advance(Millis(5'000));
  testkit::join("the shutdown", stopper);
  EXPECT_TRUE(clean);
  open("endpoint.t.image = plugin/trial\n");
  EXPECT_EQ(status("t", id).field("status"), "COMPLETED");
}

TEST_F(ServerTest, ShutdownPutsUnfinishedJobsBackInTheQueueUncounted) {
  open("endpoint.t.image = plugin/trial\n");
  const std::string id = run("t", R"({"input":{"sleepMs":600000}})").field("id");
  awaitState("t", id, "IN_PROGRESS");
  clock_.awaitWaiter(Millis(600'000), Millis(600'000));
  std::thread stopper([&] { EXPECT_TRUE(application_->stop()); });
  clock_.awaitWaiter(Millis(10'000), Millis(10'000));
  clock_.advance(Millis(10'000));
  testkit::join("the shutdown", stopper);
  open("endpoint.t.image = some/remote\n");
  const Answer job = status("t", id);
  EXPECT_EQ(job.field("status"), "IN_QUEUE");
  EXPECT_EQ(job.field("retries"), "absent") << "a drain is not a loss";
}

TEST_F(ServerTest, HigherPriorityRunsFirst) {
  open("storage = memory\nendpoint.t.image = plugin/trial\nendpoint.t.workersMax = 1\n");
  const std::string first = run("t", R"({"input":{"sleepMs":1500}})").field("id");
  awaitState("t", first, "IN_PROGRESS");
  const std::string low = run("t", R"({"input":{"sleepMs":1500},"policy":{"lowPriority":true}})").field("id");
  const std::string plain = run("t", R"({"input":{"sleepMs":1500}})").field("id");
  const std::string urgent = run("t", R"({"input":{"sleepMs":1500},"policy":{"priority":5}})").field("id");
  for (const std::string& running : {first, urgent, plain, low}) {
    awaitState("t", running, "IN_PROGRESS");
    clock_.awaitWaiter(Millis(1'500), Millis(1'500));
    clock_.advance(kPastTheSleep);
    awaitState("t", running, "COMPLETED");
  }
}

TEST_F(ServerTest, AWaitingCallerIsAnsweredAtShutdown) {
  open(kTrial);
  Answer answer;
  std::thread caller([&] { answer = call("POST", "/v2/r/runsync?wait=300000", R"({"input":{}})"); });
  clock_.awaitWaiter(Millis(300'000), Millis(300'000));
  EXPECT_TRUE(application_->stop());
  testkit::join("the caller of /runsync", caller);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.field("status"), "IN_QUEUE");
}

TEST_F(ServerTest, AServerExplainsAnUnusableConfiguration) {
  const auto refusal = [this](const std::string& settings) -> std::string {
    return testkit::thrownText<ConfigError>(
        [&] { return open(settings.starts_with("storage =") ? settings : "storage = memory\n" + settings); });
  };
  EXPECT_THAT(refusal("endpoint.a.image = plugin/none\n"), HasSubstr("no handler plugin named none"));
  EXPECT_THAT(refusal("endpoint.a.image = lua/x\n"), HasSubstr("x.lua cannot be read"));
  EXPECT_THAT(refusal("endpoint.a.image = plugin/a b\n"), HasSubstr("[A-Za-z0-9_-]{1,64}"));
  EXPECT_THAT(refusal("storage.none.x = 1\n"), HasSubstr("not a setting of any installed plugin"));
  EXPECT_THAT(refusal("plugins.required = nothing\n"), HasSubstr("nothing"));
  EXPECT_THAT(refusal("storage = none\n"), HasSubstr("no storage plugin named none"));
}

}  // namespace

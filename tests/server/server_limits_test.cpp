// Tests of the limits that depend on time, workers or a fault of the server, on the whole server.
#include "server_fixture.h"

namespace {

using namespace jobq;
using testing::HasSubstr;

constexpr const char* kLimited =
    "storage = memory\nplugins.path = " JOBQ_PLUGIN_DIR ":" JOBQ_FIXTURE_DIR
    "\nlimits.enabled = true\nlimits.queue = true\n"
    "endpoint.t.image = plugin/trial\nendpoint.t.workersMax = 60\nendpoint.p.image = plugin/echo\n"
    "endpoint.p.workersMax = 0\nendpoint.s.image = plugin/scripted\nendpoint.e.image = plugin/echo\n";
/// For awaitState() and awaitHealth(): while the clock stands still, no window of calls of /status and /health ends.
constexpr const char* kEndlessPolls = "limits.status.requests = 0\n";

class ServerLimitsTest : public ServerTest {
 protected:
  int statusOf(const std::string& method, const std::string& target, int times) const {
    int last = 0;
    for (int i = 0; i < times; ++i) last = call(method, target).status;
    return last;
  }
};

// core/http/API.md, "Rate limits": 2 requests in any 10 seconds.
TEST_F(ServerLimitsTest, TheWindowSlidesExactly) {
  open(kLimited);
  EXPECT_EQ(call("POST", "/v2/p/purge-queue").status, 200);
  clock_.advance(Millis(4'000));
  const Answer second = call("POST", "/v2/p/purge-queue");
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.headers.at("RateLimit-Limit"), "2");
  EXPECT_EQ(second.headers.at("RateLimit-Remaining"), "0");
  EXPECT_EQ(second.headers.at("RateLimit-Policy"), "2;w=10");
  clock_.advance(Millis(5'500));
  const Answer refused = call("POST", "/v2/p/purge-queue");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("Retry-After"), "1") << "half a second, rounded up";
  EXPECT_EQ(refused.headers.at("RateLimit-Reset"), "1");
  EXPECT_THAT(refused.field("error"), HasSubstr("purgeQueue is 2 in 10000 ms"));
  clock_.advance(Millis(499));
  EXPECT_EQ(call("POST", "/v2/p/purge-queue").status, 429);
  clock_.advance(Millis(1));
  EXPECT_EQ(call("POST", "/v2/p/purge-queue").status, 200) << "the first is 10 s old";
  EXPECT_EQ(call("POST", "/v2/p/purge-queue").status, 429) << "the second is not";
  EXPECT_EQ(call("POST", "/v2/e/purge-queue").status, 200) << "per endpoint";
  EXPECT_EQ(call("POST", "/sdk/v2/p/purge-queue").status, 429) << "both mounts share the limit";
}

// core/http/API.md, "Rate limits": /retry counts in the limit of /cancel, /health in the limit of /status. /status-sync
// has a separate limit.
TEST_F(ServerLimitsTest, SharedBuckets) {
  open(std::string(kLimited) +
       "limits.cancel.requests = 3\nlimits.status.requests = 3\nlimits.statusSync.requests = 1\n");
  EXPECT_EQ(statusOf("POST", "/v2/p/cancel/nobody", 2), 404);
  EXPECT_EQ(statusOf("POST", "/v2/p/retry/nobody", 1), 404);
  EXPECT_EQ(statusOf("POST", "/v2/p/retry/nobody", 1), 429);
  EXPECT_EQ(statusOf("POST", "/v2/p/cancel/nobody", 1), 429);
  EXPECT_EQ(statusOf("GET", "/v2/p/status/nobody", 2), 404);
  EXPECT_EQ(statusOf("POST", "/v2/p/status/nobody", 1), 404) << "GET and POST share the limit";
  EXPECT_EQ(statusOf("GET", "/v2/p/health", 1), 429);
  EXPECT_EQ(statusOf("GET", "/v2/p/status-sync/nobody", 1), 404);
  EXPECT_EQ(statusOf("GET", "/v2/p/status-sync/nobody", 1), 429);
}

// The limit in force is the higher of the base and running workers times perWorker; a change is known within a second.
TEST_F(ServerLimitsTest, RunningWorkersRaiseTheLimit) {
  open(std::string(kLimited) + kEndlessPolls + "limits.requests.requests = 2\nlimits.requests.perWorker = 3\n");
  std::vector<std::string> ids;
  for (int i = 0; i < 2; ++i) ids.push_back(run("t", R"({"input":{"sleepMs":60000}})").field("id"));
  awaitHealth("t", "\"running\":2");  // the storage has a job IN_PROGRESS before its worker counts as busy
  clock_.advance(Millis(1'000));
  EXPECT_EQ(call("GET", "/v2/t/requests").headers.at("RateLimit-Limit"), "6") << "2 workers x 3";
  for (const std::string& id : ids) EXPECT_EQ(call("POST", "/v2/t/cancel/" + id).status, 200);
  awaitHealth("t", "\"running\":0");
  clock_.advance(Millis(1'000));
  EXPECT_EQ(call("GET", "/v2/t/requests").headers.at("RateLimit-Limit"), "2");
}

TEST_F(ServerLimitsTest, RefusedCallsAndCallsWithoutAKeyAreNotCounted) {
  open(std::string(kLimited) + "limits.run.requests = 2\n");
  EXPECT_EQ(callWith("wrong", "POST", "/v2/p/run", R"({"input":{}})").status, 401);
  EXPECT_EQ(callWith("wrong", "POST", "/v2/p/run", R"({"input":{}})").status, 401);
  EXPECT_EQ(run("p", R"({"input":{}})").status, 200);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run("p", "{").status, 400) << "the call counts among the malformed calls";
  EXPECT_EQ(run("p", "{").status, 429);
  EXPECT_EQ(run("p", R"({"input":{}})").status, 200);
  EXPECT_EQ(run("p", R"({"input":{}})").status, 429);
  EXPECT_EQ(call("GET", "/v2/p/health").field("jobs").find("\"inQueue\":2") == std::string::npos, false);
}

// core/http/API.md, "Length of the queue": 429 while `maxQueued` jobs wait.
TEST_F(ServerLimitsTest, ASubmissionBeyondTheQueueLimitIsRefused) {
  open(std::string(kLimited) + "endpoint.p.maxQueued = 51\n");
  for (int i = 0; i < 51; ++i) ASSERT_EQ(run("p", R"({"input":{}})").status, 200) << i;
  const Answer refused = run("p", R"({"input":{}})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("Retry-After"), "1");
  EXPECT_THAT(refused.field("error"), HasSubstr("51 jobs wait"));
  EXPECT_EQ(call("POST", "/v2/p/runsync", R"({"input":{}})").status, 429);
  EXPECT_EQ(call("POST", "/v2/p/purge-queue").field("removed"), "51");
  clock_.advance(Millis(1'000));
  EXPECT_EQ(run("p", R"({"input":{}})").status, 200);
}

// core/http/API.md, "/runsync": the default of `wait` is 90,000 ms.
TEST_F(ServerLimitsTest, TheDefaultWaitIsNinetySeconds) {
  open(kLimited);
  Answer answer;
  const std::string id = run("p", R"({"input":{}})").field("id");
  for (const auto& [method, target] :
       {std::pair<std::string, std::string>("POST", "/v2/p/runsync"), {"GET", "/v2/p/status-sync/" + id}}) {
    std::thread caller([&, method = method, target = target] { answer = call(method, target, R"({"input":{}})"); });
    clock_.awaitWaiter(Millis(90'000), Millis(90'000));
    clock_.advance(Millis(90'000));
    testkit::join("the caller of " + target, caller);
    EXPECT_EQ(answer.field("status"), "IN_QUEUE") << target;
  }
}

// core/http/API.md, "Lifetime of jobs and results": the retention is 1 minute from the job's end, or as long as a
// longer `wait`, up to 5 minutes.
TEST_F(ServerLimitsTest, ALongerWaitKeepsTheResultLonger) {
  open(kLimited);
  for (const auto& [wait, kept] : {std::pair(1'000, 60'000), std::pair(90'000, 60'000), std::pair(90'001, 90'001),
                                   std::pair(200'000, 200'000), std::pair(300'000, 300'000)}) {
    const std::string id = call("POST", "/v2/e/runsync?wait=" + std::to_string(wait), R"({"input":{}})").field("id");
    clock_.advance(Millis(kept - 1));
    EXPECT_EQ(status("e", id).status, 200) << wait;
    clock_.advance(Millis(1));
    EXPECT_EQ(status("e", id).status, 404) << wait;
  }
}

// core/http/API.md, "Policy": the default of ttl is 24 hours, the maximum is 7 days.
TEST_F(ServerLimitsTest, TheLifeOfAJob) {
  open(kLimited);
  const std::string day = run("p", R"({"input":{}})").field("id");
  const std::string week = run("p", R"({"input":{},"policy":{"ttl":604800000}})").field("id");
  clock_.advance(Millis(86'400'000 - 1));
  EXPECT_EQ(status("p", day).status, 200);
  clock_.advance(Millis(1));
  EXPECT_EQ(status("p", day).status, 404);
  clock_.advance(Millis(604'800'000 - 86'400'000 - 1));
  EXPECT_EQ(status("p", week).status, 200);
  clock_.advance(Millis(1));
  EXPECT_EQ(status("p", week).status, 404);
}

// FAILED, TIMED_OUT and CANCELLED jobs have the retention of COMPLETED jobs; a retry works only until then.
TEST_F(ServerLimitsTest, EveryEndIsKeptForHalfAnHour) {
  open(std::string(kLimited) + kEndlessPolls);
  const std::string failed = run("t", R"({"input":{"fail":"no"}})").field("id");
  awaitState("t", failed, "FAILED");
  const std::string cancelled = run("p", R"({"input":{}})").field("id");
  EXPECT_EQ(call("POST", "/v2/p/cancel/" + cancelled).status, 200);
  clock_.advance(Millis(1'800'000 - 1));
  EXPECT_EQ(status("t", failed).status, 200);
  EXPECT_EQ(status("p", cancelled).status, 200);
  clock_.advance(Millis(1));
  EXPECT_EQ(status("t", failed).status, 404);
  EXPECT_EQ(status("p", cancelled).status, 404);
  EXPECT_EQ(call("POST", "/v2/t/retry/" + failed).status, 404);
}

// core/http/API.md, "Policy": the execution timeout counts only while the job runs, with a default of 10 minutes.
TEST_F(ServerLimitsTest, TheExecutionTimeoutCountsOnlyWhileRunning) {
  open("storage = memory\nendpoint.t.image = plugin/trial\nendpoint.t.workersMax = 1\n");
  const std::string first = run("t", R"({"input":{"sleepMs":599000}})").field("id");
  awaitState("t", first, "IN_PROGRESS");
  const std::string second = run("t", R"({"input":{"sleepMs":700000}})").field("id");
  clock_.awaitWaiter(Millis(599'000), Millis(599'000));
  clock_.advance(Millis(599'000));
  EXPECT_EQ(call("GET", "/v2/t/status-sync/" + first).field("status"), "COMPLETED");
  awaitState("t", second, "IN_PROGRESS");
  clock_.awaitWaiter(Millis(700'000), Millis(700'000));
  clock_.advance(Millis(599'000));
  EXPECT_EQ(status("t", second).field("status"), "IN_PROGRESS") << "the time in the queue does not count";
  clock_.advance(Millis(1'000));
  awaitState("t", second, "TIMED_OUT");
}

// core/decisions/jobs.md: a job with an output over 20 MB is FAILED; an output is never dropped silently.
TEST_F(ServerLimitsTest, AnOutputOverTwentyMegabytesFailsTheJob) {
  open(kLimited);
  const Answer most = call("POST", "/v2/s/runsync", R"({"input":{"outputBytes":20971520}})");
  EXPECT_EQ(most.field("status"), "COMPLETED");
  EXPECT_GT(most.body.size(), 20'971'520U);
  const Answer over = call("POST", "/v2/s/runsync", R"({"input":{"outputBytes":20971521}})");
  EXPECT_EQ(over.field("status"), "FAILED");
  EXPECT_THAT(over.field("error"), HasSubstr("20971521 bytes, the limit is 20971520"));
  EXPECT_EQ(over.field("output"), "absent");
}

struct KeptLog final : Log {
  void write(LogLevel, std::string_view event, std::string_view text) noexcept override {
    Lock lock(mutex);
    lines += std::string(event) + " " + std::string(text) + "\n";
  }
  Mutex mutex;
  std::string lines;
};

// core/decisions/http.md: a 500 means a fault of the server or of a filter, and carries a request id found in the log
// line.
TEST_F(ServerLimitsTest, TheRequestIdOfAServerFaultIsInTheLog) {
  std::ofstream(dir_ / "jobq.properties") << "server.port = 0\n"
                                          << "storage = memory\n"
                                          << "endpoint.e.image = plugin/echo\nqueue.policy = broken\n"
                                          << "plugins.path = " JOBQ_PLUGIN_DIR ":" JOBQ_FIXTURE_DIR "\n";
  KeptLog log;
  application_ = std::make_unique<Application>(loadConfig(dir_ / "jobq.properties", {}), clock_, log);
  application_->start();
  key_ = *readFile(dir_ / "jobq-data/admin.key");
  key_.pop_back();
  const Answer fault = run("e", R"({"input":{}})");
  EXPECT_EQ(fault.status, 500);
  const std::string sentence = fault.field("error");
  ASSERT_THAT(sentence, HasSubstr("under request "));
  const std::string id = sentence.substr(sentence.rfind(' ') + 1);
  EXPECT_EQ(id.size(), 16U);
  Lock lock(log.mutex);
  EXPECT_THAT(log.lines, HasSubstr("http.fault POST /v2/e/run (request " + id + "): it is broken on purpose"));
  EXPECT_EQ(sentence.find("broken"), std::string::npos) << "the answer shows no internal details";
  lock.unlock();
  application_.reset();
}

}  // namespace

// The storage calls behind /requests, /purge-queue, ?ttl=, /stream, keys and webhooks fail for half a minute. Callers
// read 503 with the reason, and no state has changed. The webhook dispatcher goes on without help.
#include <algorithm>

#include "fault_fixture.h"

namespace jobq::fault {
namespace {

using testing::HasSubstr;

constexpr const char* kOutageEndpoints =
    "endpoint.t.image = plugin/trial\nendpoint.t.workersMax = 2\n"
    "endpoint.q.image = plugin/echo\nendpoint.q.workersMax = 0\n";
constexpr Millis kOperationOutage{30'000};

class OperationOutage : public FaultTest {
 protected:
  std::size_t faultsOf(const std::string& operation) const {
    const auto failed = plan_.failed();
    return static_cast<std::size_t>(std::count(failed.begin(), failed.end(), operation));
  }

  /// Expects 503 while `operation` fails, and 200 at the very moment the outage ends; returns the second answer.
  Answer refusedThenDone(const std::string& operation, const std::string& method, const std::string& target,
                         const std::string& body = "") {
    const std::size_t before = faultsOf(operation);
    plan_.failOperation(operation, clock_.now() + kOperationOutage);
    for (int i = 0; i < 2; ++i) {
      const Answer refused = call(method, target, body);
      EXPECT_EQ(refused.status, 503) << method << " " << target << ": " << refused.body;
      EXPECT_THAT(refused.body, HasSubstr(kInjected));
      EXPECT_TRUE(refused.headers.contains("Retry-After"));
      if (i == 0) clock_.advance(kOperationOutage - Millis(1'000));
    }
    EXPECT_GE(faultsOf(operation), before + 2) << operation << " was not called";
    clock_.advance(Millis(1'000));
    Answer done = call(method, target, body);
    EXPECT_EQ(done.status, 200) << method << " " << target << ": " << done.body;
    return done;
  }

  /// Returns whether the only delivery of the job is delivered.
  bool isDelivered(const std::string& job) const {
    const auto known = deliveries(job);
    return known.size() == 1 && known.front().state == DeliveryState::delivered;
  }
  std::vector<Delivery> deliveries(const std::string& job) const { return inner_->outbox().list("", job, 10); }
};

TEST_P(OperationOutage, AFailedPurgeRemovesNoJob) {
  openFaulty(kOutageEndpoints);
  for (int i = 0; i < 3; ++i) (void)run("q", R"({"input":{}})");
  EXPECT_EQ(refusedThenDone("jobs.list", "GET", "/v2/q/requests").field("total"), "3");
  EXPECT_EQ(refusedThenDone("jobs.purgeQueued", "POST", "/v2/q/purge-queue").field("removed"), "3");
  EXPECT_EQ(inner_->jobs().list({"q", {}}, {}).total, 0U);
}

TEST_P(OperationOutage, AFailedChangeOfTheTtlHasNoEffect) {
  openFaulty(kOutageEndpoints);
  const std::string id = run("q", R"({"input":{}})").field("id");
  const Instant day = stored("q", id)->expiresAt;
  plan_.failNext("jobs.setTtl");
  EXPECT_EQ(call("GET", "/v2/q/status/" + id + "?ttl=5000").status, 503);
  EXPECT_EQ(stored("q", id)->expiresAt, day);
  (void)refusedThenDone("jobs.setTtl", "GET", "/v2/q/status/" + id + "?ttl=5000");
  EXPECT_EQ(stored("q", id)->expiresAt, clock_.now() + Millis(5'000));
}

TEST_P(OperationOutage, OneKeyIsOneJob) {
  openFaulty(kOutageEndpoints);
  extra_ = {{"Idempotency-Key", "once"}};
  const std::string id = refusedThenDone("jobs.insert", "POST", "/v2/q/run", R"({"input":{}})").field("id");
  EXPECT_EQ(run("q", R"({"input":{}})").field("id"), id);
  EXPECT_EQ(run("q", R"({"input":{"a":1}})").status, 400) << "the body differs from the first call's";
  EXPECT_EQ(inner_->jobs().list({"q", {}}, {}).total, 1U);
}

// The server repeats a call whose answer was lost, so the caller reads no 503 for a job that is stored.
TEST_P(OperationOutage, ACallWithoutAnAnswerIsRepeated) {
  openFaulty(kOutageEndpoints);
  plan_.failCall("jobs.insert", 1, CallFault::done);
  const Answer submitted = run("q", R"({"input":{}})");
  EXPECT_EQ(submitted.status, 200) << submitted.body;
  const std::string id = submitted.field("id");
  EXPECT_EQ(inner_->jobs().list({"q", {}}, {}).total, 1U);
  plan_.failCall("jobs.setTtl", 1, CallFault::done);
  EXPECT_EQ(call("GET", "/v2/q/status/" + id + "?ttl=50000").status, 200);
  EXPECT_EQ(stored("q", id)->expiresAt, clock_.now() + Millis(50'000));
  plan_.failCall("jobs.cancel", 1, CallFault::done);
  EXPECT_EQ(call("POST", "/v2/q/cancel/" + id).field("status"), "CANCELLED");
  const std::string failed = run("t", R"({"input":{"fail":"no"}})").field("id");
  ASSERT_TRUE(reached([&] { return status("t", failed).field("status") == "FAILED"; }));
  plan_.failCall("jobs.requeue", 1, CallFault::done);
  EXPECT_EQ(call("POST", "/v2/t/retry/" + failed).status, 200);
  ASSERT_TRUE(reached([&] { return status("t", failed).field("status") == "FAILED"; }));
  EXPECT_EQ(stored("t", failed)->retries, 1U);
  EXPECT_EQ(plan_.failed(), (std::vector<std::string>{"jobs.insert", "jobs.setTtl", "jobs.cancel", "jobs.requeue"}));
}

// No answer comes at all: the caller reads 503, and the job, which is stored, runs. The same key names the same job.
TEST_P(OperationOutage, AnInsertWithoutAnyAnswerIsOneJobUnderItsKey) {
  openFaulty(kOutageEndpoints);
  extra_ = {{"Idempotency-Key", "once"}};
  plan_.failCall("jobs.insert", 1, CallFault::unanswered);
  const Answer lost = run("t", R"({"input":{"output":1}})");
  EXPECT_EQ(lost.status, 503) << lost.body;
  plan_.heal();
  ASSERT_TRUE(reached([&] { return inner_->jobs().list({"t", JobState::completed}, {}).total == 1; }));
  const std::string id = run("t", R"({"input":{"output":1}})").field("id");
  EXPECT_EQ(status("t", id).field("status"), "COMPLETED");
  EXPECT_EQ(inner_->jobs().list({"t", {}}, {}).total, 1U);
}

// The worker repeats the report whose answer was lost. The repeated report is accepted, so the waiting caller is
// answered at once, and the webhook is owed once.
TEST_P(OperationOutage, AFinishWithoutAnAnswerIsRepeated) {
  openFaulty(kOutageEndpoints);
  plan_.failCall("leases.finish", 1, CallFault::done);
  const Instant begin = clock_.now();
  const Answer answer =
      callPatiently(key_, "POST", "/v2/t/runsync?wait=240000", R"({"input":{"output":1},"webhook":"file:///post"})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.field("status"), "COMPLETED") << answer.body;
  EXPECT_LT(clock_.now() - begin, Millis(120'000)) << "the caller waited to the end";
  EXPECT_EQ(faultsOf("leases.finish"), 1U);
  const std::string call = answer.field("id") + ".1";
  EXPECT_TRUE(reached([&] { return posted("post")[call].size() == 1; }));
  EXPECT_EQ(deliveries(answer.field("id")).size(), 1U);
}

// The storage answers the question for the claimed jobs at once, or only when it can be reached again.
TEST_P(OperationOutage, AClaimWithoutAnAnswerRunsItsJobOnce) {
  openFaulty(kOutageEndpoints);
  for (const bool longer : {false, true}) {
    plan_.failCall("leases.claim", 1, CallFault::done);
    if (longer) plan_.failOperation("leases.claimed", clock_.now() + kOperationOutage);
    const std::string id = run("t", R"({"input":{"output":1}})").field("id");
    ASSERT_TRUE(reached([&] { return status("t", id).field("status") == "COMPLETED"; }));
    EXPECT_EQ(stored("t", id)->attempt, 1U);
    EXPECT_EQ(stored("t", id)->retries, 0U);
    EXPECT_EQ(faultsOf("leases.claim"), longer ? 2U : 1U);
    if (longer) {
      EXPECT_GE(faultsOf("leases.claimed"), 1U);
    }
  }
}

// Neither the call nor its answer has happened.
TEST_P(OperationOutage, AWhollyLostCallIsMadeAgain) {
  openFaulty(kOutageEndpoints);
  for (const char* operation : {"jobs.insert", "leases.claim", "leases.finish", "chunks.append", "chunks.appendLog"}) {
    plan_.failCall(operation, 1, CallFault::lost);
    const std::string id = run("t", R"({"input":{"chunks":1,"log":["a"],"output":1}})").field("id");
    ASSERT_TRUE(reached([&] { return status("t", id).field("status") == "COMPLETED"; })) << operation;
    EXPECT_EQ(faultsOf(operation), 1U);
    EXPECT_EQ(stored("t", id)->attempt, 1U) << operation;
    EXPECT_EQ(chunksOf("t", id).size(), 1U) << operation;
    EXPECT_EQ(inner_->chunks().readLog({"t", id}).value().lines.size(), 1U) << operation;
  }
  const std::string id = run("t", R"({"input":{"chunks":1,"output":1}})").field("id");
  ASSERT_TRUE(reached([&] { return status("t", id).field("status") == "COMPLETED"; }));
  plan_.failCall("chunks.consume", 1, CallFault::lost);
  EXPECT_THAT(call("GET", "/v2/t/stream/" + id).body, HasSubstr("\"chunk\":0"));
  plan_.failCall("records.create", 1, CallFault::lost);
  EXPECT_EQ(call("POST", "/v1/templates", R"({"name":"a","imageName":"plugin/echo"})").status, 200);
}

TEST_P(OperationOutage, ChunksWithoutAnAnswerAreStoredOnce) {
  openFaulty(kOutageEndpoints);
  plan_.failCall("chunks.append", 2, CallFault::done);
  const std::string id = run("t", R"({"input":{"chunks":3,"output":1}})").field("id");
  ASSERT_TRUE(reached([&] { return status("t", id).field("status") == "COMPLETED"; }));
  EXPECT_EQ(faultsOf("chunks.append"), 1U);
  EXPECT_EQ(chunksOf("t", id).size(), 3U);
}

// The idempotency key is looked up before the filters run: no filter runs while the result of the lookup is unknown.
TEST_P(OperationOutage, AKeyIsJudgedOnce) {
  openFaulty(std::string(kOutageEndpoints) + "scripts.path = " JOBQ_SOURCE_DIR
                                             "/scripts/lua\nendpoint.q.filters = tenant_quota\n"
                                             "endpoint.q.env.TENANT_QUOTA = 1/60\n");
  extra_ = {{"Idempotency-Key", "once"}};
  const std::string id =
      refusedThenDone("jobs.findByIdempotencyKey", "POST", "/v2/q/run", R"({"input":{}})").field("id");
  EXPECT_EQ(refusedThenDone("jobs.findByIdempotencyKey", "POST", "/v2/q/run", R"({"input":{}})").field("id"), id);
  extra_ = {{"Idempotency-Key", "another"}};
  EXPECT_THAT(run("q", R"({"input":{}})").body, HasSubstr("the quota of 1/60 s is used up"));
  EXPECT_EQ(inner_->jobs().list({"q", {}}, {}).total, 1U);
}

TEST_P(OperationOutage, AFailedStreamConsumesNoChunk) {
  openFaulty(kOutageEndpoints);
  const std::string id = run("t", R"({"input":{"chunks":2,"output":1}})").field("id");
  ASSERT_TRUE(reached([&] { return status("t", id).field("status") == "COMPLETED"; }));
  Answer read = refusedThenDone("chunks.read", "GET", "/v2/t/stream/" + id + "?offset=0");
  EXPECT_THAT(read.body, testing::MatchesRegex(".*chunk.:0.*chunk.:1.*"));
  Answer taken = refusedThenDone("chunks.consume", "GET", "/v2/t/stream/" + id);
  EXPECT_EQ(taken.body, read.body);
  EXPECT_EQ(call("GET", "/v2/t/stream/" + id).body, "[]") << "once";
}

// The repeated call returns the page that was lost, and not the next one.
TEST_P(OperationOutage, AStreamWithoutAnAnswerLosesNoChunk) {
  openFaulty(kOutageEndpoints);
  const std::string id = run("t", R"({"input":{"chunks":3,"output":1}})").field("id");
  ASSERT_TRUE(reached([&] { return status("t", id).field("status") == "COMPLETED"; }));
  plan_.failCall("chunks.consume", 1, CallFault::done);
  EXPECT_THAT(call("GET", "/v2/t/stream/" + id).body, testing::MatchesRegex(".*chunk.:0.*chunk.:1.*chunk.:2.*"));
  EXPECT_EQ(faultsOf("chunks.consume"), 1U);
  EXPECT_EQ(call("GET", "/v2/t/stream/" + id).body, "[]") << "once";
}

TEST_P(OperationOutage, LogLinesWithoutAnAnswerAreStoredOnce) {
  openFaulty(kOutageEndpoints);
  plan_.failCall("chunks.appendLog", 1, CallFault::done);
  const std::string id = run("t", R"({"input":{"log":["a","b"],"output":1}})").field("id");
  ASSERT_TRUE(reached([&] { return status("t", id).field("status") == "COMPLETED"; }));
  EXPECT_EQ(inner_->chunks().readLog({"t", id}).value().lines.size(), 2U);
  EXPECT_EQ(faultsOf("chunks.appendLog"), 1U);
}

// The lists of the sweep are lost, so nobody is named: the server asks for each run, and wakes every caller.
TEST_P(OperationOutage, ASweepWithoutAnAnswerStopsTheRunAndWakesItsCaller) {
  openFaulty(kOutageEndpoints);
  plan_.failCall("leases.sweep", 1, CallFault::done);
  const Instant begin = clock_.now();
  const Answer answer = callPatiently(key_, "POST", "/v2/t/runsync?wait=240000",
                                      R"({"input":{"sleepMs":600000},"policy":{"executionTimeout":5000}})");
  EXPECT_EQ(answer.field("status"), "TIMED_OUT") << answer.body;
  EXPECT_LT(clock_.now() - begin, Millis(120'000)) << "the caller waited to the end";
  EXPECT_EQ(faultsOf("leases.sweep"), 1U);
  EXPECT_TRUE(reached([&] { return call("GET", "/v2/t/health").body.find("\"running\":0") != std::string::npos; }));
  EXPECT_LT(clock_.now() - begin, Millis(500'000)) << "the handler was not stopped";
}

TEST_P(OperationOutage, AChangeOfATemplateWithoutAnAnswerIsDoneOnce) {
  openFaulty(kOutageEndpoints);
  plan_.failCall("records.create", 1, CallFault::done);
  const Answer made = call("POST", "/v1/templates", R"({"name":"a","imageName":"plugin/echo"})");
  EXPECT_EQ(made.status, 200) << made.body;
  const std::string path = "/v1/templates/" + made.field("id");
  plan_.failCall("records.update", 1, CallFault::done);
  EXPECT_EQ(call("PATCH", path, R"({"readme":"r"})").status, 200);
  EXPECT_EQ(call("GET", path).field("readme"), "r");
  plan_.failCall("records.remove", 1, CallFault::done);
  EXPECT_EQ(call("DELETE", path).status, 204);
  EXPECT_EQ(call("GET", path).status, 404);
  EXPECT_EQ(plan_.failed(), (std::vector<std::string>{"records.create", "records.update", "records.remove"}));
}

TEST_P(OperationOutage, AReplayWithoutAnAnswerIsRepeated) {
  openFaulty(kOutageEndpoints);
  const std::string id = run("t", R"({"input":{"output":1},"webhook":"file:///post"})").field("id");
  ASSERT_TRUE(reached([&] { return isDelivered(id); }));
  plan_.failCall("outbox.replay", 1, CallFault::done);
  EXPECT_EQ(call("POST", "/v1/webhooks/" + id + ".1/replay").status, 200);
  EXPECT_TRUE(reached([&] { return posted("post")[id + ".1"].size() >= 2; }));
  EXPECT_EQ(faultsOf("outbox.replay"), 1U);
}

// The chunks of one answer are read in pieces: the chunks of the first piece must survive a failure of the second.
TEST_P(OperationOutage, AStreamOfSeveralPiecesLosesNoPiece) {
  openFaulty(kOutageEndpoints);
  for (std::uint64_t k = 1; k <= 3; ++k) {
    const std::string id = run("t", R"({"input":{"chunks":3,"chunkBytes":700000,"output":1}})").field("id");
    ASSERT_TRUE(reached([&] { return status("t", id).field("status") == "COMPLETED"; }));
    plan_.failCall("chunks.consume", k, CallFault::before);
    std::string consumed;
    for (std::string state; state != "COMPLETED";) {
      Answer page = call("GET", "/v2/t/stream/" + id);
      state = page.headers["X-Job-Status"];
      if (page.status == 200) consumed += page.body;
    }
    for (const char* chunk : {"\"chunk\":0", "\"chunk\":1", "\"chunk\":2"}) {
      EXPECT_THAT(consumed.find(chunk), testing::Ne(std::string::npos))
          << chunk << " is lost when take " << k << " fails";
    }
    plan_.heal();
  }
  EXPECT_GE(faultsOf("chunks.consume"), 2U);
}

// A caller waiting for chunks is answered when the storage fails.
TEST_P(OperationOutage, AWaitingStreamGetsTheFailure) {
  openFaulty(kOutageEndpoints);
  const std::string id = run("q", R"({"input":{}})").field("id");
  auto caller = std::async(std::launch::async, [&] { return call("GET", "/v2/q/stream/" + id + "?wait=20000"); });
  clock_.awaitWaiter(Millis(20'000), Millis(20'000));
  plan_.failOperation("chunks.consume", clock_.now() + Millis(600'000));
  EXPECT_TRUE(reached([&] { return isDone(caller); }));
  EXPECT_EQ(testkit::resultOf("the answer to the stream", caller).status, 503);
  EXPECT_GE(faultsOf("chunks.consume"), 1U);
}

TEST_P(OperationOutage, AdminsReadTheReason) {
  openFaulty(kOutageEndpoints);
  const std::string id = run("t", R"({"input":{"output":1},"webhook":"file:///post"})").field("id");
  // The test waits for the stored state: a replay during the first call would be joined with the running call.
  ASSERT_TRUE(reached([&] { return isDelivered(id); }));
  EXPECT_THAT(refusedThenDone("outbox.list", "GET", "/v1/webhooks?jobId=" + id).body, HasSubstr(id + ".1"));
  (void)refusedThenDone("outbox.replay", "POST", "/v1/webhooks/" + id + ".1/replay");
  EXPECT_TRUE(reached([&] { return posted("post")[id + ".1"].size() == 2; }));
  EXPECT_EQ(posted("post").size(), 1U);
}

// The outage lasts half a minute, or until its third failure, which is less than a delivery's lease: the result of a
// call is kept until the storage accepts it, and no receiver is called twice.
TEST_P(OperationOutage, AWebhookOutlivesItsStorage) {
  openFaulty(kOutageEndpoints);
  const std::filesystem::path obstacle = dir_ / "jobq-data" / "webhooks" / "blocked";
  for (const char* operation : {"records.find", "outbox.dueHosts", "outbox.claimDue", "outbox.recordAttempt",
                                "outbox.finishDelivery", "outbox.reschedule"}) {
    const bool blocked = std::string_view(operation) == "outbox.reschedule";
    const std::string file = blocked ? "blocked" : "post";
    if (blocked) std::filesystem::create_directories(obstacle);
    const std::size_t before = faultsOf(operation);
    const Instant end = clock_.now() + kOperationOutage;
    plan_.failOperation(operation);
    const std::string id = run("t", R"({"input":{"output":1},"webhook":"file:///)" + file + "\"}").field("id");
    ASSERT_TRUE(reached([&] { return faultsOf(operation) >= before + 3; })) << operation << " was not called";
    plan_.failOperation(operation, end);
    EXPECT_TRUE(reached([&] { return status("t", id).field("status") == "COMPLETED"; }))
        << "the webhook does not affect the job";
    if (blocked) std::filesystem::remove(obstacle);
    EXPECT_TRUE(reached([&] { return isDelivered(id); })) << operation;
    EXPECT_EQ(posted(file)[id + ".1"].size(), 1U) << operation;
    EXPECT_EQ(deliveries(id).at(0).attempts.size(), blocked ? 2U : 1U) << operation;
    plan_.heal();
  }
}

INSTANTIATE_TEST_SUITE_P(Over, OperationOutage, testing::ValuesIn(testkit::andMysql({"memory", "sqlite"})),
                         nameOfStorage);

}  // namespace
}  // namespace jobq::fault

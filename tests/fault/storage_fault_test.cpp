// The k-th call of the storage fails, for every k of a day with every operation. Every acknowledged job ends right, no
// job is stuck, no slot is lost, the counters agree, and a caller reads 200, 503 or another documented status.
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "call_shares.h"
#include "fault_fixture.h"

namespace jobq::fault {
namespace {

using testing::HasSubstr;

constexpr const char* kEndpoints =
    "endpoint.e.image = plugin/echo\nendpoint.e.workersMax = 2\n"
    "endpoint.t.image = plugin/trial\nendpoint.t.workersMax = 2\n"
    "endpoint.u.image = plugin/trial\nendpoint.u.workersMax = 1\nendpoint.u.workersMin = 1\n"
    "endpoint.p.image = plugin/echo\nendpoint.p.workersMax = 0\n";
constexpr const char* kOperationEndpoints =
    "endpoint.t.image = plugin/trial\nendpoint.t.workersMax = 2\n"
    "endpoint.k.image = plugin/echo\nendpoint.q.image = plugin/echo\nendpoint.q.workersMax = 0\n";
constexpr const char* kForever = R"({"input":{"sleepMs":600000}})";

/// A client that repeats a call after a 503 and remembers the expected end of each of its jobs.
class ClientTest : public FaultTest {
 protected:
  /// A job answered with 200, and its expected end.
  struct KeyedCall {
    std::string endpoint;
    std::string id;
    std::string status;
    std::string output;  ///< output of a COMPLETED job
    std::uint32_t attempts = 1;
  };

  /// Repeats the call after a 503, as a client does. One fault is one 503 at most.
  Answer insist(const std::string& method, const std::string& target, const std::string& body = "",
                const std::string& key = "") {
    return untilDone([&] { return callPatiently(key.empty() ? key_ : key, method, target, body); });
  }
  /// Repeats the call after a 503 while time stands still.
  Answer insistNow(const std::string& method, const std::string& target) {
    return untilDone([&] { return call(method, target); });
  }
  Answer untilDone(const std::function<Answer()>& ask) {
    for (;;) {
      Answer answer = ask();
      EXPECT_NE(answer.status, 500) << answer.body;
      if (answer.status != 503) return answer;
      EXPECT_THAT(answer.body, HasSubstr(kInjected));
      EXPECT_EQ(answer.headers["Retry-After"], "1");
      if (++refusals_ > plan_.failed().size()) {
        ADD_FAILURE() << "503 without a fault: " << answer.body;
        return answer;
      }
    }
  }

  /// Submits a job and remembers its expected end. `operation` is run or runsync.
  std::string submitAndExpect(const std::string& endpoint, const std::string& body, const std::string& status,
                              const std::string& output = "", const std::string& operation = "run",
                              const std::string& key = "") {
    const std::string wait = operation == "runsync" ? "?wait=300000" : "";
    const Answer answer = insist("POST", "/v2/" + endpoint + "/" + operation + wait, body, key);
    EXPECT_EQ(answer.status, 200) << answer.body;
    if (operation == "runsync") {
      // The job is stored, but the storage failed when asked for its outcome.
      EXPECT_THAT(answer.field("status"), testing::AnyOf(status, "IN_QUEUE")) << answer.body;
    }
    idempotencyKeys_.push_back({endpoint, answer.field("id"), status, output});
    return answer.field("id");
  }

  /// Waits by reading past the faults, then makes one call.
  void awaitStatus(const std::string& endpoint, const std::string& id, JobState state) {
    const auto there = [&] {
      const auto job = stored(endpoint, id);
      return job && job->state == state;
    };
    EXPECT_TRUE(reached(there)) << id << " at " << endpoint << " does not become " << nameOf(state);
    EXPECT_EQ(insist("GET", "/v2/" + endpoint + "/status/" + id).field("status"), nameOf(state));
  }

  void cancel(const std::string& endpoint, const std::string& id) {
    const Answer answer = insist("POST", "/v2/" + endpoint + "/cancel/" + id);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.field("status"), "CANCELLED");
  }

  /// Expects each job to end as the client expects, and no job to run more often than it had to.
  void expectContractKept() {
    for (const KeyedCall& idempotency : idempotencyKeys_) {
      EXPECT_TRUE(reached([&] {
        return status(idempotency.endpoint, idempotency.id).field("status") == idempotency.status;
      })) << idempotency.id
          << " at " << idempotency.endpoint << " should be " << idempotency.status << ": "
          << status(idempotency.endpoint, idempotency.id).body;
      const Answer answer = status(idempotency.endpoint, idempotency.id);
      const auto job = stored(idempotency.endpoint, idempotency.id);
      ASSERT_EQ(job.has_value(), answer.status == 200);
      EXPECT_EQ(job.has_value(), idempotency.status != "absent");
      if (!job) continue;
      EXPECT_EQ(job->output, idempotency.output);
      EXPECT_EQ(job->attempt, idempotency.attempts) << "the handler ran as often as necessary";
      EXPECT_EQ(job->losses, 0U);
    }
  }

  std::vector<KeyedCall> idempotencyKeys_;
  std::size_t refusals_ = 0;
};

/// The parameter is the storage's name and a share of the calls, such as sqlite_2: calls 2, 6, 10, ... fail. The four
/// shares of a storage are tests of their own, so the shares run at the same time.
class EveryCall : public ClientTest {
 protected:
  static constexpr std::uint64_t kShares = 4;

  std::string storageName() const override {
    return std::string(GetParam()).substr(0, std::string(GetParam()).find('_'));
  }
  std::uint64_t stride() const { return kShares * (storageName() == "mysql" ? sparseness() : 1); }
  std::uint64_t share() const { return static_cast<std::uint64_t>(std::string_view(GetParam()).back() - '0'); }

  // The parts of a day ----------------------------------------------------------------------------------------------

  void useKeys() {
    const std::string body = R"({"name":"n","scopes":["client"],"endpoints":["e"]})";
    const Answer made = insist("POST", "/v1/keys", body);
    ASSERT_EQ(made.status, 200) << made.body;
    EXPECT_EQ(insist("GET", "/v1/keys").status, 200);
    EXPECT_EQ(callWith("", "GET", "/healthz").status, 200);
    EXPECT_EQ(insist("GET", "/readyz").status, 200);
    submitAndExpect("e", R"({"input":{"by":"key"}})", "COMPLETED", R"({"by":"key"})", "run", made.field("key"));
    EXPECT_EQ(insist("DELETE", "/v1/keys/" + made.field("id")).status, 204);
    EXPECT_EQ(insist("GET", "/v2/e/health", "", made.field("key")).status, 401) << "revoked";
    EXPECT_THAT(insist("GET", "/v1/keys").body, Not(HasSubstr("\"n\"")))
        << "a key without a known secret is not stored";
  }

  void runAndEnd() {
    for (const char* input : {"{\"a\":1}", "{\"a\":1.0}"}) {
      submitAndExpect("e", std::string("{\"input\":") + input + "}", "COMPLETED", input);
    }
    submitAndExpect("e", R"({"input":{"low":1},"policy":{"lowPriority":true}})", "COMPLETED", R"({"low":1})");
    submitAndExpect("e", R"({"input":{"sync":1}})", "COMPLETED", R"({"sync":1})", "runsync");
    reporter_ = submitAndExpect("t", R"({"input":{"progress":[1,2],"chunks":3,"log":["a","b"],"output":"told"}})",
                                "COMPLETED", "\"told\"");
    submitAndExpect("t", R"({"input":{"sleepMs":1500,"output":1}})", "COMPLETED", "1");
    submitAndExpect("u", R"({"input":{"chunks":1,"sleepMs":500,"output":2}})", "COMPLETED", "2", "runsync");
    submitAndExpect("u", R"({"input":{"throw":"boom"}})", "FAILED");
    const std::string again = submitAndExpect("t", R"({"input":{"fail":"no"}})", "FAILED");
    const Answer failed = callPatiently(key_, "GET", "/v2/t/status-sync/" + again);
    EXPECT_THAT(failed.status, testing::AnyOf(200, 503));
    awaitStatus("t", again, JobState::failed);
    EXPECT_EQ(insist("POST", "/v2/t/retry/" + again).status, 200);
    idempotencyKeys_.back().attempts = 3;  // run, retry, run
  }

  void stopAndExpire() {
    const std::string brief = R"({"input":{"sleepMs":600000},"policy":{"ttl":10000}})";
    submitAndExpect("p", brief, "absent");
    submitAndExpect("t", brief, "absent");
    submitAndExpect("p", R"({"input":{}})", "IN_QUEUE");
    idempotencyKeys_.back().attempts = 0;
    const std::string waiting = submitAndExpect("p", R"({"input":{}})", "CANCELLED");
    idempotencyKeys_.back().attempts = 0;
    cancel("p", waiting);
    const std::string running = submitAndExpect("t", kForever, "CANCELLED");
    awaitStatus("t", running, JobState::inProgress);
    cancel("t", running);
    submitAndExpect("u", R"({"input":{"sleepMs":600000},"policy":{"executionTimeout":5000}})", "TIMED_OUT");
    awaitStatus("u", idempotencyKeys_.back().id, JobState::timedOut);
  }

  /// Expects one job for one idempotency key, however often sent and whatever fails.
  void useAKey() {
    extra_ = {{"Idempotency-Key", "once"}};
    const std::string first = submitAndExpect("k", R"({"input":{"a":1}})", "COMPLETED", R"({"a":1})");
    EXPECT_EQ(insist("POST", "/v2/k/run", R"({"input":{"a":1}})").field("id"), first);
    extra_.clear();
    EXPECT_EQ(inner_->jobs().list({"k", {}}, {}).total, 1U);
  }

  void purgeAndShorten() {
    for (int i = 0; i < 2; ++i) submitAndExpect("q", R"({"input":{}})", "absent");
    EXPECT_EQ(insist("GET", "/v2/q/requests").field("total"), "2");
    EXPECT_EQ(insist("POST", "/v2/q/purge-queue").field("removed"), "2") << "a failed purge removed no job";
    EXPECT_EQ(insist("GET", "/v2/q/requests?status=IN_QUEUE").field("total"), "0");
    const std::string brief = submitAndExpect("q", R"({"input":{}})", "absent");
    const Instant before = clock_.now();
    EXPECT_EQ(insistNow("GET", "/v2/q/status/" + brief + "?ttl=8000").status, 200);
    const auto job = stored("q", brief);
    ASSERT_TRUE(job);
    EXPECT_EQ(job->expiresAt, before + Millis(8'000));
  }

  /// Expects each consumed chunk once, and all chunks when read from the beginning.
  void readAStream() {
    reporter_ = submitAndExpect("t", R"({"input":{"log":["a","b"],"chunks":3,"sleepMs":500,"output":"told"}})",
                                "COMPLETED", "\"told\"");
    std::string consumed;
    std::string state;
    while (state != "COMPLETED" && !HasFailure()) {
      Answer page = insist("GET", "/v2/t/stream/" + reporter_);
      ASSERT_EQ(page.status, 200) << page.body;
      state = page.headers["X-Job-Status"];
      consumed += page.body;
    }
    const auto times = [&consumed](const std::string& text) {
      int count = 0;
      for (std::size_t at = 0; (at = consumed.find(text, at)) != std::string::npos; ++at) ++count;
      return count;
    };
    for (const char* chunk : {"\"chunk\":0", "\"chunk\":1", "\"chunk\":2"}) EXPECT_EQ(times(chunk), 1) << consumed;
    EXPECT_THAT(insist("GET", "/v2/t/stream/" + reporter_ + "?offset=0").body,
                testing::MatchesRegex(".*chunk.:0.*chunk.:1.*chunk.:2.*"));
  }

  /// Expects one delivery at once, one at its second try, and one repeated on demand.
  void callWebhooks() {
    const std::filesystem::path obstacle = dir_ / "jobq-data" / "webhooks" / "blocked";
    std::filesystem::create_directories(obstacle);
    const std::string good =
        submitAndExpect("t", R"({"input":{"output":1},"webhook":"file:///good"})", "COMPLETED", "1") + ".1";
    const std::string late =
        submitAndExpect("t", R"({"input":{"fail":"no"},"webhook":"file:///blocked"})", "FAILED") + ".1";
    EXPECT_EQ(insist("GET", "/v1/webhooks/secret").status, 200);
    const auto known = [&](const std::string& id) {
      return inner_->outbox().list("", id.substr(0, id.size() - 2), 10);
    };
    EXPECT_TRUE(reached([&] { return !known(late).empty() && known(late)[0].tries > 0; })) << "no try of " << late;
    std::filesystem::remove(obstacle);
    for (const std::string& id : {good, late}) {
      const auto delivered = [&] { return !known(id).empty() && known(id)[0].state == DeliveryState::delivered; };
      EXPECT_TRUE(reached(delivered)) << id;
      EXPECT_THAT(insist("GET", "/v1/webhooks?jobId=" + id.substr(0, id.size() - 2)).body, HasSubstr("delivered"));
    }
    EXPECT_EQ(insist("POST", "/v1/webhooks/" + good + "/replay").status, 200);
    EXPECT_TRUE(reached([&] { return posted("good")[good].size() == 2; })) << "the replay was not sent";
    EXPECT_EQ(posted("good").size(), 1U);
    EXPECT_THAT(posted("good")[good][0], HasSubstr("COMPLETED"));
    EXPECT_EQ(posted("blocked").size(), 1U);
    EXPECT_THAT(posted("blocked")[late], testing::ElementsAre(HasSubstr("FAILED")));
  }

  void liveOneDay() {
    openPatiently(kEndpoints);
    useKeys();
    runAndEnd();
    stopAndExpire();
    for (const char* endpoint : {"e", "t", "u", "p"}) {
      EXPECT_EQ(insist("GET", std::string("/v2/") + endpoint + "/health").status, 200);
    }
  }

  // Conditions after each day ----------------------------------------------------------------------------------------

  void expectReportsKept() {
    const auto chunks = chunksOf("t", reporter_);
    ASSERT_EQ(chunks.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(chunks[i].output, HasSubstr("\"chunk\":" + std::to_string(i)));
    const auto lines = inner_->chunks().readLog({"t", reporter_});
    ASSERT_TRUE(lines);
    ASSERT_EQ(lines->lines.size(), 2U);
    EXPECT_EQ(lines->lines[0].text + lines->lines[1].text, "ab");
  }

  int listed(const std::string& endpoint, JobState state) const {
    return static_cast<int>(inner_->jobs().list({endpoint, state}, {}).total);
  }

  void expectCountersAgree() {
    for (const char* endpoint : {"e", "t", "u", "p"}) {
      const auto quiet = [&] { return health(endpoint, "running") == 0 && health(endpoint, "inProgress") == 0; };
      EXPECT_TRUE(reached(quiet)) << endpoint << ": " << call("GET", std::string("/v2/") + endpoint + "/health").body;
      EXPECT_EQ(health(endpoint, "inQueue"), listed(endpoint, JobState::inQueue)) << endpoint;
      EXPECT_EQ(health(endpoint, "completed"), listed(endpoint, JobState::completed)) << endpoint;
      // Each end counts, also an end before a retry.
      EXPECT_EQ(health(endpoint, "failed"),
                listed(endpoint, JobState::failed) + listed(endpoint, JobState::timedOut) + health(endpoint, "retried"))
          << endpoint;
    }
  }

  /// Plays `scenario` with each call of this share failing, until a scenario ran to its end without a fault. Threads
  /// change the order of the calls a little: in the first share, each operation of `operations` not met by then has a
  /// day of its own.
  void forEveryCall(const std::vector<const char*>& operations, const std::function<void()>& scenario) {
    std::string failed;
    for (std::uint64_t k = share(); failed != kNone; k += stride()) {
      ASSERT_LT(k, 2'000U) << "the scenario has no end";
      plan_.failCall(plan_.calls() + k);
      failed = play(scenario);
      ASSERT_FALSE(HasFailure()) << "when call " << k << " fails, " << failed;
    }
    for (const char* operation : operations) {
      if (share() != 1 || stride() > kShares || met_[operation] > 0) continue;
      plan_.failNext(operation);
      EXPECT_EQ(play(scenario), operation);
      ASSERT_FALSE(HasFailure()) << "when the first " << operation << " fails";
    }
    for (const auto& [operation, times] : met_) std::cout << "  " << operation << " " << times << "\n";
  }

  /// Returns the name of the failed operation.
  std::string play(const std::function<void()>& scenario) {
    const std::size_t faults = plan_.failed().size();
    idempotencyKeys_.clear();
    refusals_ = faults;
    scenario();
    close();
    plan_.heal();
    std::filesystem::remove_all(dir_ / "jobq-data");
    std::string failed = plan_.failed().size() > faults ? plan_.failed().back() : kNone;
    ++met_[failed];
    return failed;
  }

  static constexpr const char* kNone = "no call";
  std::string reporter_;
  std::map<std::string, int> met_;  ///< number of failures by operation
};

TEST_P(EveryCall, ADayWithOneFault) {
  const std::vector<const char*> operations{
      "jobs.insert",      "jobs.find",     "jobs.cancel",         "jobs.requeue",    "jobs.counts",
      "leases.claim",     "leases.finish", "leases.sweep",        "leases.progress", "chunks.append",
      "chunks.appendLog", "records.list",  "records.create",      "records.remove",  "records.find",
      "records.update",   "check",         "records.changedSince"};
  forEveryCall(operations, [this] {
    liveOneDay();
    plan_.heal();
    expectContractKept();
    expectReportsKept();
    expectCountersAgree();
    expectSlots("t", 2);
    expectSlots("u", 1);
  });
}

TEST_P(EveryCall, KeysPurgesStreamsAndWebhooksWithOneFault) {
  const std::vector<const char*> operations{
      "jobs.insert",          "jobs.list",   "jobs.purgeQueued", "jobs.setTtl",       "chunks.append",
      "chunks.consume",       "chunks.read", "outbox.dueHosts",  "outbox.claimDue",   "outbox.finishDelivery",
      "outbox.recordAttempt", "outbox.list", "outbox.replay",    "outbox.reschedule", "records.find",
      "records.create"};
  forEveryCall(operations, [this] {
    openPatiently(kOperationEndpoints);
    useAKey();
    purgeAndShorten();
    readAStream();
    callWebhooks();
    plan_.heal();
    expectContractKept();
    expectReportsKept();
    expectSlots("t", 2);
  });
}

/// Suite for a storage that keeps its content over a restart.
class EveryCallOfARestart : public EveryCall {};

// The shutdown puts a running job back into the queue, and the next start finds everything unchanged.
TEST_P(EveryCallOfARestart, AShutdownAndAStartWithOneFault) {
  forEveryCall({"leases.giveBack", "leases.sweep", "leases.finish", "records.list"}, [this] {
    openPatiently(kEndpoints);
    submitAndExpect("e", R"({"input":{"a":1}})", "COMPLETED", R"({"a":1})");
    awaitStatus("e", idempotencyKeys_.back().id, JobState::completed);
    submitAndExpect("p", R"({"input":{}})", "IN_QUEUE");
    idempotencyKeys_.back().attempts = 0;
    const std::string running = insist("POST", "/v2/t/run", kForever).field("id");
    awaitStatus("t", running, JobState::inProgress);
    openPatiently(kEndpoints);
    EXPECT_EQ(insist("GET", "/readyz").status, 200);
    awaitStatus("t", running, JobState::inProgress);
    plan_.heal();
    expectContractKept();
    const auto job = stored("t", running);
    ASSERT_TRUE(job);
    EXPECT_EQ(job->retries, 0U) << "a drain is not a loss";
    cancel("t", running);
    expectCountersAgree();
    expectSlots("t", 2);
  });
}

INSTANTIATE_TEST_SUITE_P(Over, EveryCall, testing::ValuesIn(sharesOf(testkit::andMysql({"memory", "sqlite"}))),
                         nameOfStorage);
INSTANTIATE_TEST_SUITE_P(Over, EveryCallOfARestart, testing::ValuesIn(sharesOf(testkit::andMysql({"sqlite"}))),
                         nameOfStorage);

}  // namespace
}  // namespace jobq::fault

// A storage failing for a while: all work continues after the outage, without a restart, without a new submission, and
// no handler runs twice because of the outage.
#include <algorithm>
#include <functional>

#include "core/jobs/claimer.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/run_reports.h"
#include "core/workers/run/run_context.h"
#include "fault_fixture.h"
#include "tests/support/fakes.h"

namespace jobq::fault {
namespace {

using testing::HasSubstr;

constexpr const char* kFour =
    "endpoint.t.image = plugin/trial\nendpoint.t.workersMax = 4\n"
    "endpoint.e.image = plugin/echo\nendpoint.e.workersMax = 1\n";
constexpr Millis kOutage{30'000};

class Outage : public FaultTest {
 protected:
  std::vector<std::string> submit(int count, const std::function<std::string(int)>& input) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) ids.push_back(run("t", "{\"input\":" + input(i) + "}").field("id"));
    return ids;
  }
  static std::string sleeper(int number) {
    return R"({"sleepMs":1000,"chunks":1,"output":)" + std::to_string(number) + "}";
  }
  bool awaitRunning(int count) {
    return reachedNow([&] { return health("t", "running") == count; });
  }
  /// Returns a time without a storage after which the node goes on with its running jobs. A node that shares its
  /// storage gives its jobs up after ten seconds without a beat, because another node may take them over.
  Millis bearableOutage() const { return inner_->leaseLife() ? Millis(8'000) : kOutage; }
  bool hasFailed(const std::string& operation, std::size_t times = 1) const {
    const auto failed = plan_.failed();
    return static_cast<std::size_t>(std::count(failed.begin(), failed.end(), operation)) >= times;
  }

  /// Expects each job to have ended with its own number as output, after one run of its handler.
  void expectNumbered(const std::vector<std::string>& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ASSERT_TRUE(reached([&] { return status("t", ids[i]).field("status") == "COMPLETED"; }))
          << status("t", ids[i]).body;
      EXPECT_EQ(status("t", ids[i]).field("output"), std::to_string(i));
      EXPECT_EQ(stored("t", ids[i])->attempt, 1U);
      EXPECT_EQ(chunksOf("t", ids[i]).size(), 1U) << "the handler ran once";
    }
  }
};

TEST_P(Outage, FinishFailsForHalfAMinuteAndNoOutcomeIsLost) {
  openFaulty(kFour);
  const auto ids = submit(4, sleeper);
  ASSERT_TRUE(awaitRunning(4));
  clock_.awaitWaiter(Millis(1'000), Millis(1'000), 4);
  const Instant end = clock_.now() + kOutage;
  plan_.failOperation("leases.finish", end);
  ASSERT_TRUE(reached([&] { return hasFailed("leases.finish", 4); }));
  while (clock_.now() + Millis(500) < end) {
    EXPECT_EQ(call("GET", "/readyz").status, 200);
    for (const std::string& id : ids) EXPECT_EQ(status("t", id).field("status"), "IN_PROGRESS");
    EXPECT_EQ(health("t", "running"), 4);
    clock_.advance(Millis(500));
  }
  expectNumbered(ids);
  EXPECT_EQ(health("t", "completed"), 4);
  expectSlots("t", 4);
}

TEST_P(Outage, UnreadableKeysAreGoodForASecond) {
  openFaulty(kFour);
  plan_.failOperation("records.changedSince");
  clock_.advance(Millis(600));
  EXPECT_EQ(call("GET", "/v2/t/health").status, 200);
  EXPECT_TRUE(hasFailed("records.changedSince"));
  clock_.advance(Millis(600));
  EXPECT_EQ(call("GET", "/v2/t/health").status, 503) << "a revoked key must not live longer";
  plan_.heal();
  EXPECT_EQ(call("GET", "/v2/t/health").status, 200);
}

TEST_P(Outage, WhateverIsThrownNoJobAndNoWorkerIsLost) {
  openFaulty(kFour);
  for (const char* operation : {"jobs.counts", "leases.finish", "leases.claim", "leases.sweep"}) {
    plan_.exhaustNext(operation);
    const std::string id = run("t", R"({"input":{"output":7}})").field("id");
    ASSERT_TRUE(reached([&] { return status("t", id).field("status") == "COMPLETED"; }))
        << operation << status("t", id).body;
    ASSERT_TRUE(reached([&] { return hasFailed(operation); })) << operation;
  }
  expectSlots("t", 4);
}

TEST_P(Outage, AStoredRunsyncIsAcknowledged) {
  openFaulty(kFour);
  plan_.failOperation("jobs.find");
  const Answer answer = callPatiently(key_, "POST", "/v2/t/runsync", R"({"input":{"output":7}})");
  plan_.heal();
  EXPECT_EQ(answer.status, 200) << answer.body;
  const std::string id = answer.field("id");
  EXPECT_TRUE(reached([&] { return status("t", id).field("status") == "COMPLETED"; }))
      << "the caller repeats a submission after the answer 503";
}

// The storage may be gone when an abandoned handler goes on.
TEST_P(Outage, NoReportFollowsAStop) {
  openFaulty(kFour);
  application_.reset();
  plan_.failOperation("");
  const testkit::MapConfig config;
  FaultyStorage storage(testkit::loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_memory.so", "memory",
                                                     PluginEnv{config, clock_, log_, dir_, false}),
                        plan_);
  const ClaimedJob job;
  std::stop_source stop;
  QueueSignal queueSignal({});
  ClaimerSlot claimer(queueSignal);
  CompletionNotifier watch(clock_);
  test::CountingDeliveries deliveries;
  RunReports reports(storage, queueSignal, claimer, watch, deliveries);
  RunContext context({reports, clock_, log_}, job, nullptr, Instant(), "", stop.get_token());
  stop.request_stop();
  context.emit("1", "");
  context.progress("1");
  context.log(LogLevel::information, "1");
  EXPECT_TRUE(plan_.failed().empty());
}

TEST_P(Outage, AllCallsFailForHalfAMinuteAndAllJobsGoOn) {
  openFaulty(kFour);
  const auto ids = submit(6, sleeper);
  ASSERT_TRUE(awaitRunning(4));
  clock_.awaitWaiter(Millis(1'000), Millis(1'000), 4);
  const Instant end = clock_.now() + bearableOutage();
  plan_.failOperation("", end);
  ASSERT_TRUE(reached([&] { return hasFailed("leases.sweep"); }));
  while (clock_.now() + Millis(1'000) < end) {
    EXPECT_EQ(callWith("", "GET", "/healthz").status, 200);
    for (const Answer& answer : {call("GET", "/readyz"), run("t", R"({"input":{}})"), status("t", ids[0])}) {
      EXPECT_EQ(answer.status, 503) << answer.body;
      EXPECT_THAT(answer.body, HasSubstr(kInjected));
    }
    clock_.advance(Millis(1'000));
  }
  clock_.advance(Millis(1'000));
  EXPECT_EQ(call("GET", "/readyz").status, 200);
  expectNumbered(ids);
  EXPECT_EQ(health("t", "completed"), 6) << "a submission with the answer 503 is not stored";
  expectSlots("t", 4);
}

// The queue signal of a job stays set while the storage cannot return the job.
TEST_P(Outage, ANotificationOutlivesTheOutage) {
  openFaulty(kFour);
  for (const bool idle : {false, true}) {
    for (const char* operation : {"jobs.counts", "leases.claim", ""}) {
      if (idle) {
        EXPECT_EQ(callPatiently(key_, "POST", "/v2/e/runsync", R"({"input":{}})").status, 200);
      } else {
        EXPECT_TRUE(reached([&] { return health("e", "idle") == 0; })) << "a worker leaves after the idle time";
      }
      const std::size_t before = plan_.failed().size();
      const bool all = std::string_view(operation).empty();
      plan_.failOperation(all ? "leases.claim" : operation);
      const std::string id = run("e", R"({"input":{"a":1}})").field("id");
      if (all) plan_.failOperation("");
      // An idle worker takes the job, so no count is needed.
      const std::size_t faults = idle && std::string_view(operation) == "jobs.counts" ? 0 : 3;
      EXPECT_TRUE(reached([&] { return plan_.failed().size() >= before + faults; })) << operation << idle;
      plan_.heal();
      EXPECT_TRUE(reached([&] { return status("e", id).field("status") == "COMPLETED"; })) << operation << idle;
    }
  }
}

// A waiting caller claims for a free worker on its own thread.
TEST_P(Outage, AWaitingCallerIsServedWhenTheClaimWorksAgain) {
  openFaulty(kFour);
  EXPECT_EQ(callPatiently(key_, "POST", "/v2/e/runsync", R"({"input":{}})").status, 200);
  plan_.failOperation("leases.claim");
  auto caller = std::async(std::launch::async, [&] { return call("POST", "/v2/e/runsync", R"({"input":{"a":1}})"); });
  ASSERT_TRUE(reachedNow([&] { return health("e", "inQueue") == 1; }));
  const auto before = plan_.failed().size();
  EXPECT_TRUE(reached([&] { return plan_.failed().size() > before; })) << "a claim fails while the job waits";
  plan_.heal();
  EXPECT_TRUE(reached([&] { return isDone(caller); }));
  const Answer answer = testkit::resultOf("the answer of /runsync", caller);
  EXPECT_EQ(answer.field("status"), "COMPLETED") << answer.body;
}

// The report of a handler is repeated until stored: a short failure of the storage is no failure of the job.
TEST_P(Outage, AFailedReportDoesNotFailTheJob) {
  openFaulty(kFour);
  for (const char* operation : {"leases.progress", "chunks.append", "chunks.appendLog"}) {
    plan_.failOperation(operation);
    const std::string id = run("t", R"({"input":{"progress":[1],"chunks":2,"log":["a","b"],"output":7}})").field("id");
    ASSERT_TRUE(reached([&] { return hasFailed(operation, 5); }));
    EXPECT_EQ(status("t", id).field("status"), "IN_PROGRESS");
    plan_.heal();
    EXPECT_TRUE(reached([&] { return status("t", id).field("status") != "IN_PROGRESS"; }));
    EXPECT_EQ(status("t", id).field("status"), "COMPLETED") << status("t", id).body;
    EXPECT_EQ(status("t", id).field("output"), "7");
    const auto chunks = chunksOf("t", id);
    ASSERT_EQ(chunks.size(), 2U) << operation;
    EXPECT_THAT(chunks[0].output, HasSubstr("\"chunk\":0"));
    EXPECT_EQ(inner_->chunks().readLog({"t", id})->lines.size(), 2U) << operation;
  }
}

TEST_P(Outage, AJobWaitingToReportCanBeCancelledAndTimesOut) {
  openFaulty(kFour);
  plan_.failOperation("chunks.append");
  const std::string cancelled = run("t", R"({"input":{"chunks":1}})").field("id");
  ASSERT_TRUE(reachedNow([&] { return hasFailed("chunks.append"); }));
  EXPECT_EQ(call("POST", "/v2/t/cancel/" + cancelled).status, 200);
  EXPECT_TRUE(reachedNow([&] { return health("t", "running") == 0; })) << "the stop token ends the wait";
  const std::string late = run("t", R"({"input":{"chunks":1},"policy":{"executionTimeout":5000}})").field("id");
  EXPECT_TRUE(reached([&] { return status("t", late).field("status") == "TIMED_OUT"; })) << status("t", late).body;
  EXPECT_TRUE(reached([&] { return health("t", "running") == 0; }));
  EXPECT_EQ(status("t", cancelled).field("status"), "CANCELLED");
}

TEST_P(Outage, DueWorkIsDoneAfterTheOutage) {
  openFaulty(kFour);
  const std::string late = run("t", R"({"input":{"sleepMs":600000},"policy":{"executionTimeout":5000}})").field("id");
  const std::string gone = run("t", R"({"input":{"sleepMs":600000},"policy":{"ttl":10000}})").field("id");
  ASSERT_TRUE(awaitRunning(2));
  plan_.failOperation("leases.sweep");
  const Instant end = clock_.now() + kOutage;
  ASSERT_TRUE(reached([&] { return clock_.now() >= end; }));
  ASSERT_TRUE(reached([&] { return hasFailed("leases.sweep", 3); }));
  EXPECT_EQ(status("t", gone).status, 404) << "absent, swept or not";
  // A node that shares its storage asks for the ends of its runs, and needs no sweep to stop the expired job.
  const int running = inner_->leaseLife() ? 1 : 2;
  EXPECT_TRUE(reachedNow([&] { return health("t", "running") == running; })) << health("t", "running");
  plan_.heal();
  EXPECT_TRUE(reached([&] { return status("t", late).field("status") == "TIMED_OUT"; }));
  EXPECT_TRUE(reached([&] { return health("t", "running") == 0; }));
  expectSlots("t", 4);
}

// A job is running for all callers as soon as its claim is stored: the worker about to start must not miss a cancel
// after the claim. While time stands still, only a worker that was told becomes free for the next job.
TEST_P(Outage, ACancelBetweenTheClaimAndTheStartIsNotLost) {
  openFaulty("endpoint.t.image = plugin/trial\nendpoint.t.workersMax = 1\n");
  for (const bool waits : {false, true}) {
    plan_.hold("leases.claim");
    std::future<Answer> caller;
    std::string id;
    if (waits) {
      const std::string body = R"({"input":{"sleepMs":600000}})";
      caller = std::async(std::launch::async, [this, body] { return call("POST", "/v2/t/runsync?wait=300000", body); });
    } else {
      id = run("t", R"({"input":{"sleepMs":600000}})").field("id");
    }
    ASSERT_TRUE(reachedNow([&] { return plan_.isHolding(); }));
    if (waits) id = inner_->jobs().list({"t", JobState::inProgress}, {}).jobs.at(0).id;
    EXPECT_EQ(call("POST", "/v2/t/cancel/" + id).field("status"), "CANCELLED");
    plan_.letGo();
    if (waits) {
      EXPECT_EQ(testkit::resultOf("the answer of /runsync", caller).field("status"), "CANCELLED");
    }
    const std::string next = run("t", R"({"input":{"output":1}})").field("id");
    ASSERT_TRUE(reachedNow([&] { return status("t", next).field("status") == "COMPLETED"; }))
        << "the handler was not stopped: " << call("GET", "/v2/t/health").body;
    ASSERT_TRUE(reachedNow([&] { return health("t", "running") == 0 && health("t", "idle") == 1; }));
  }
}

// Each call of the storage fails with one chance in five while four callers submit; failures print the seed.
TEST_P(Outage, ManyFaultsAndManyCallers) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    openFaulty(kFour);
    plan_.failAtRandom(seed, 5);
    std::vector<std::future<std::vector<std::string>>> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.push_back(std::async(std::launch::async, [this] {
        std::vector<std::string> accepted;
        for (int tries = 0; tries < 60; ++tries) {
          const Answer answer = run("t", R"({"input":{"progress":[1],"chunks":1,"output":7}})");
          EXPECT_THAT(answer.status, testing::AnyOf(200, 503)) << answer.body;
          if (answer.status == 200) accepted.push_back(answer.field("id"));
        }
        return accepted;
      }));
    }
    std::vector<std::string> ids;
    for (auto& caller : callers) {
      EXPECT_TRUE(reached([&] { return isDone(caller); }));
      for (std::string& id : testkit::resultOf("a caller of /run", caller)) ids.push_back(std::move(id));
    }
    ASSERT_GT(ids.size(), 50U);
    // Half of the jobs end while the storage still fails.
    const auto ended = [&] { return inner_->jobs().counts("t").completed; };
    EXPECT_TRUE(reached([&] { return ended() >= ids.size() / 2; })) << seed;
    plan_.heal();
    EXPECT_TRUE(reached([&] { return ended() == ids.size(); }))
        << "seed " << seed << ": " << ended() << " of " << ids.size();
    for (const std::string& id : ids) {
      const auto job = stored("t", id);
      ASSERT_TRUE(job);
      EXPECT_EQ(job->state, JobState::completed) << job->error;
      EXPECT_EQ(job->attempt, 1U);
      EXPECT_EQ(chunksOf("t", id).size(), 1U);
    }
    EXPECT_TRUE(reached([&] { return health("t", "running") == 0; }));
    EXPECT_EQ(health("t", "failed"), 0);
    expectSlots("t", 4);
    close();
    std::filesystem::remove_all(dir_ / "jobq-data");
  }
}

/// Suite for a storage that keeps its content over a restart.
class OutageOverARestart : public Outage {};

// A server with a failed storage ends in spite of it, and the next server finds every job.
TEST_P(OutageOverARestart, AShutdownWithoutAStorage) {
  for (const char* operation : {"leases.finish", "leases.giveBack", ""}) {
    openFaulty(kFour);
    const auto ids = submit(2, sleeper);
    const std::string waiting = run("e", R"({"input":{"a":1}})").field("id");
    ASSERT_TRUE(reachedNow([&] { return status("e", waiting).field("status") == "COMPLETED"; }));
    const std::string endless = run("t", R"({"input":{"sleepMs":600000}})").field("id");
    ASSERT_TRUE(awaitRunning(3));
    clock_.awaitWaiter(Millis(1'000), Millis(1'000), 2);
    if (std::string_view(operation).empty()) plan_.failFrom(plan_.calls() + 1);
    if (!std::string_view(operation).empty()) plan_.failOperation(operation);
    close();
    plan_.heal();
    openFaulty(kFour);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_TRUE(reached([&] { return status("t", ids[i]).field("status") == "COMPLETED"; }))
          << operation << ": " << status("t", ids[i]).body;
      EXPECT_EQ(status("t", ids[i]).field("output"), std::to_string(i));
      EXPECT_EQ(chunksOf("t", ids[i]).size(), 1U) << "only the last attempt has chunks";
    }
    EXPECT_EQ(status("e", waiting).field("status"), "COMPLETED");
    EXPECT_TRUE(reached([&] { return status("t", endless).field("status") == "IN_PROGRESS"; })) << operation;
    EXPECT_EQ(call("POST", "/v2/t/cancel/" + endless).status, 200);
    EXPECT_TRUE(reachedNow([&] { return health("t", "running") == 0; })) << "a shutdown waits for no stopped job";
  }
}

INSTANTIATE_TEST_SUITE_P(Over, Outage, testing::ValuesIn(testkit::andMysql({"memory", "sqlite"})), nameOfStorage);
INSTANTIATE_TEST_SUITE_P(Over, OutageOverARestart, testing::ValuesIn(testkit::andMysql({"sqlite"})), nameOfStorage);

}  // namespace
}  // namespace jobq::fault

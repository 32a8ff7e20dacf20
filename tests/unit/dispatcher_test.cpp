// Tests of the dispatcher with executors controlled by the test (core/workers/dispatcher.h).
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "core/jobs/queue_signal.h"
#include "dispatcher_fixture.h"
#include "testkit/loaded_plugin.h"
#include "tests/fault/faulty_storage.h"

namespace {

using namespace jobq;

/// Each worker is ready at once and finishes its job during the assignment. Each job of the endpoint `ep` submits the
/// next job: the queue never empties, and the workers are always free.
class FloodExecutor final : public Executor {
 public:
  static constexpr std::size_t kLeave = 10'000;  ///< jobs until the flood ends, to end a starved test too

  FloodExecutor(Storage& storage, std::function<void()> submit) : storage_(storage), submit_(std::move(submit)) {}
  void startWorker(const EndpointPtr& endpoint, const ReleasePtr&, const WorkerId& worker,
                   WorkerEvents& events) override {
    events_ = &events;
    events.workerReady(endpoint->spec.id, worker);
  }
  void assign(ClaimedJob job) override {
    EXPECT_EQ(storage_.leases().finish(job.lease, Completed{"{}"}), ReportResult::accepted);
    if (job.endpoint != "ep") {
      firstOf.try_emplace(job.endpoint, flooded);
    } else if (++flooded < kLeave) {
      submit_();
    }
    events_->workerReady(job.endpoint, job.worker);
  }
  void stopWorker(const WorkerId& worker) override { stoppedWorkers.push_back(worker); }

  std::size_t flooded = 0;                    ///< jobs of the flood that ran
  std::map<EndpointId, std::size_t> firstOf;  ///< `flooded` at the first job of each other endpoint
  std::vector<WorkerId> stoppedWorkers;

 private:
  Storage& storage_;
  const std::function<void()> submit_;
  WorkerEvents* events_ = nullptr;
};

TEST_F(DispatcherTest, AFailedWorkerStartLeavesTheSlotFree) {
  const std::function<void()> faults[] = {
      [] { throw std::bad_alloc(); },
      [] { throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)); }};
  Millis backoff{1'000};
  std::size_t asked = 0;
  for (const auto& fault : faults) {
    executor_.failing = fault;
    turn();
    EXPECT_EQ(executor_.asked.size(), ++asked);
    EXPECT_EQ(counts().initializing, 0U);
    EXPECT_EQ(counts().throttled, 1U);
    clock_.advance(backoff - Millis(1));
    turn();
    EXPECT_EQ(executor_.asked.size(), asked) << "the worker is not started before the end of the backoff";
    clock_.advance(Millis(1));
    backoff *= 2;
  }
  executor_.failing = nullptr;
  turn();
  EXPECT_EQ(executor_.asked.size(), ++asked);
  EXPECT_EQ(counts().initializing, 1U);
  EXPECT_EQ(counts().throttled, 0U);
}

// The shutdown comes before the dispatcher's pass over the retirement. The job of a deleted endpoint has no reader, and
// no drain waits for the job.
TEST_F(DispatcherTest, StopEndsTheJobsOfAnEndpointRetiredJustBefore) {
  BusyExecutor executor(running_);
  Dispatch dispatch(*storage_, queueSignal_, executor, running_, clock_, log_, "other", endpoints(handlers_));
  submit("ep");
  while (dispatch.runPassIfDue()) continue;
  ASSERT_EQ(executor.runs.size(), 1U);
  ASSERT_FALSE(executor.runs[0]->token().stop_requested());
  dispatch.pools.retire("ep");
  dispatch.dispatcher.stop();
  EXPECT_TRUE(executor.runs[0]->token().stop_requested());
  EXPECT_EQ(storage_->jobs().find({"ep", "job1"}).value().state, JobState::inQueue) << "the job is back in the queue";
}

// A server has many more endpoints than endpoints with work: a pass costs as much as the work, not as the server.
TEST_F(DispatcherTest, APassLooksOnlyAtChangedEndpoints) {
  constexpr std::size_t kTasks = 6;
  constexpr std::size_t kFewPasses = 4;
  constexpr int kQuiet = 1'000;
  BusyExecutor executor(running_);
  std::vector<EndpointPtr> all{endpoint(handlers_, "ep", 0, 1)};
  for (int i = 0; i < kQuiet; ++i) all.push_back(endpoint(handlers_, "quiet" + std::to_string(i), 1, 1));
  Dispatch dispatch(*storage_, queueSignal_, executor, running_, clock_, log_, "other", all);
  const auto visitsDuring = [&](auto&& event) {
    const std::uint64_t before = dispatch.pools.endPass().visits;
    event();
    while (dispatch.runPassIfDue()) continue;
    return dispatch.pools.endPass().visits - before;
  };
  EXPECT_GE(visitsDuring([] {}), kTasks * kQuiet) << "each endpoint is new";
  (void)visitsDuring([&] { queueSignal_.wake(); });  // the workers that became ready in the pass
  EXPECT_LE(visitsDuring([&] { submit("ep"); }), kTasks * kFewPasses);
  ASSERT_EQ(executor.jobs.size(), 1U);
  EXPECT_LE(visitsDuring([&] { dispatch.supervisor.stopRun(executor.jobs[0].lease); }), kTasks * kFewPasses);
  EXPECT_LE(visitsDuring([&] { clock_.advance(all[0]->spec.stopGrace); }), kTasks * kFewPasses);
  EXPECT_EQ(dispatch.pools.status("ep").counts.unhealthy, 1U) << "the stop grace is over";
}

// A flood at an endpoint with 128 workers, always free again: the dispatcher's other tasks take turns with its claims.
// The test counts jobs of the flood; tests/fault/test_fair_share.py measures the time.
TEST_F(DispatcherTest, AFloodAtAnEndpointDelaysTheOtherEndpointsByAtMostTwoLooks) {
  constexpr std::size_t kTwoLooks = 2 * 64;
  constexpr int kCold = 12;
  FloodExecutor executor(*storage_, [this] { submit("ep"); });
  std::vector<EndpointPtr> all{endpoint(handlers_, "ep", 128, 128)};
  for (int i = 0; i < kCold; ++i) all.push_back(endpoint(handlers_, "cold" + std::to_string(i), 0, 1));
  for (const EndpointPtr& each : all) queueSignal_.addEndpoint(each->spec.id);
  Dispatch dispatch(*storage_, queueSignal_, executor, running_, clock_, log_, "other", all);
  while (dispatch.runPassIfDue()) continue;
  for (int i = 0; i < 200; ++i) submit("ep");
  EXPECT_TRUE(dispatch.runPassIfDue());
  const std::size_t before = executor.flooded;
  EXPECT_GT(before, 0U);
  EXPECT_LE(before, kTwoLooks) << "the flood goes on";
  for (int i = 0; i < kCold; ++i) submit("cold" + std::to_string(i));
  for (int looks = 0; looks < 10 && executor.firstOf.size() < kCold; ++looks) EXPECT_TRUE(dispatch.runPassIfDue());
  ASSERT_EQ(executor.firstOf.size(), kCold);
  for (const auto& [id, at] : executor.firstOf)
    EXPECT_LE(at - before, kTwoLooks) << "jobs of the flood before the first job of " << id;

  EXPECT_TRUE(dispatch.runPassIfDue()) << "the pass finds no second job";
  const std::size_t then = executor.flooded;
  clock_.advance(Millis(3'600'000));  // longer than any idleTimeout
  EXPECT_TRUE(dispatch.runPassIfDue());
  EXPECT_EQ(executor.stoppedWorkers.size(), kCold) << "idle workers leave in the middle of the flood";
  EXPECT_LE(executor.flooded - then, kTwoLooks);
}

/// The dispatcher over a storage that loses answers. The endpoint `ep` has one worker, which is ready at once.
class LostClaimTest : public DispatcherTest {
 protected:
  LostClaimTest() { turn(); }

  void submitHere(const JobId& id) {
    JobSpec job;
    job.id = id;
    job.endpoint = "ep";
    job.input = "{}";
    ASSERT_TRUE(std::holds_alternative<Inserted>(faulty_.jobs().insert(std::move(job), ArrivalPolicy())));
    queueSignal_.notify("ep", false);
  }
  void turn() {
    while (dispatch_.runPassIfDue()) continue;
  }
  std::uint64_t running() { return faulty_.jobs().counts("ep").inProgress; }
  /// Lets the first claim fail, and expects a run of the only job at once, under the first attempt.
  void expectOneRun(fault::CallFault how) {
    plan_.failCall("leases.claim", 1, how);
    submitHere("a");
    turn();
    EXPECT_EQ(plan_.failed(), std::vector<std::string>{"leases.claim"});
    EXPECT_EQ(executor_.runs.size(), 1U);
    EXPECT_EQ(faulty_.jobs().find({"ep", "a"})->attempt, 1U);
  }

  fault::FaultPlan plan_{clock_};
  fault::FaultyStorage faulty_{testkit::loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_memory.so", "memory",
                                                            PluginEnv{config_, clock_, log_, ".", false}),
                               plan_};
  BusyExecutor executor_{running_};
  Dispatch dispatch_{faulty_, queueSignal_, executor_, running_, clock_, log_, "other", endpoints(handlers_)};
};

TEST_F(LostClaimTest, AFencedNodeClaimsNothing) {
  dispatch_.life.setFenced(true);
  submitHere("a");
  turn();
  EXPECT_EQ(running(), 0U);
  dispatch_.life.setFenced(false);
  queueSignal_.notifyAll();
  turn();
  EXPECT_EQ(executor_.runs.size(), 1U);
}

// The idle time of the worker is over, but the signal says that jobs wait: the pass must not be due again at once.
TEST_F(LostClaimTest, ADispatcherOfAFencedNodePauses) {
  dispatch_.life.setFenced(true);
  queueSignal_.notifyAll();
  clock_.advance(Millis(86'400'000));
  int passes = 0;
  for (; passes < 100 && dispatch_.runPassIfDue(); ++passes) continue;
  EXPECT_LE(passes, 2);
}

TEST_F(LostClaimTest, AFencedNodeDoesNotAskForClaimsWithoutAnAnswer) {
  plan_.failCall("leases.claim", 1, fault::CallFault::unanswered);
  plan_.failOperation("leases.claimed");
  submitHere("a");
  turn();
  plan_.heal();
  dispatch_.life.setFenced(true);
  clock_.advance(Millis(500));
  turn();
  EXPECT_EQ(executor_.runs.size(), 0U);
  dispatch_.life.setFenced(false);
  queueSignal_.notifyAll();
  turn();
  EXPECT_EQ(executor_.runs.size(), 1U);
}

// The jobs of an earlier life are lost: other nodes may have them.
TEST_F(LostClaimTest, TheJobsOfAClaimOfAnEarlierLifeGoBack) {
  plan_.failCall("leases.claim", 1, fault::CallFault::unanswered);
  plan_.failOperation("leases.claimed");
  submitHere("a");
  turn();
  plan_.heal();
  dispatch_.life.join();
  clock_.advance(Millis(500));
  turn();
  turn();
  ASSERT_EQ(executor_.runs.size(), 1U) << "claimed by the new life";
  EXPECT_EQ(faulty_.jobs().find({"ep", "a"})->attempt, 3U);
  EXPECT_TRUE(faulty_.leases().sweep(9).stopped.empty()) << "no job of the earlier life is left";
}

TEST_F(LostClaimTest, TheJobOfAClaimWithoutAnAnswerRunsOnce) { expectOneRun(fault::CallFault::done); }

// The claim has not happened, so the queue still has the job.
TEST_F(LostClaimTest, AJobWaitsNoLongerIfTheClaimNeverHappened) { expectOneRun(fault::CallFault::lost); }

// An exception other than StorageError does not tell whether the step has happened: the jobs are asked for as well.
TEST_F(LostClaimTest, AClaimEndedWithoutMemoryIsAskedFor) {
  plan_.exhaustNext("leases.claim");
  submitHere("a");
  for (int i = 0; i < 2; ++i) {
    turn();
    clock_.advance(Millis(500));
  }
  turn();
  EXPECT_EQ(executor_.runs.size(), 1U);
}

// The worker of the claim stays reserved meanwhile: it would have two jobs otherwise.
TEST_F(LostClaimTest, AnUnansweredClaimIsAskedForUntilTheStorageAnswers) {
  plan_.failCall("leases.claim", 1, fault::CallFault::done);
  plan_.failOperation("leases.claimed");
  submitHere("a");
  turn();
  submitHere("b");
  queueSignal_.clear("ep");
  EXPECT_TRUE(queueSignal_.set("ep", false));
  dispatch_.claimer.claimForCaller("ep");  // claims on this thread, without a look at the unanswered claim
  for (int i = 0; i < 3; ++i) {
    clock_.advance(Millis(500));
    turn();
  }
  EXPECT_TRUE(executor_.runs.empty());
  EXPECT_EQ(running(), 1U) << "no further job was claimed for the same worker";
  plan_.heal();
  clock_.advance(Millis(500));
  turn();
  EXPECT_EQ(executor_.runs.size(), 1U);
  EXPECT_EQ(running(), 1U);
  EXPECT_EQ(faulty_.jobs().find({"ep", "a"})->attempt, 1U);
}

TEST_F(LostClaimTest, AJobCancelledMeanwhileDoesNotRunAndTheWorkerIsFree) {
  plan_.failCall("leases.claim", 1, fault::CallFault::done);
  plan_.failOperation("leases.claimed");
  submitHere("a");
  turn();
  (void)faulty_.jobs().cancel({"ep", "a"});
  plan_.heal();
  submitHere("b");
  clock_.advance(Millis(500));
  turn();
  ASSERT_EQ(executor_.runs.size(), 1U);
  EXPECT_EQ(faulty_.jobs().find({"ep", "b"})->state, JobState::inProgress);
}

TEST_F(LostClaimTest, AShutdownReturnsTheJobsOfAnUnansweredClaim) {
  plan_.failCall("leases.claim", 1, fault::CallFault::done);
  plan_.failNext("leases.claimed");
  submitHere("a");
  turn();
  EXPECT_EQ(running(), 1U);
  dispatch_.dispatcher.stop();
  EXPECT_TRUE(executor_.runs.empty());
  const auto job = faulty_.jobs().find({"ep", "a"});
  EXPECT_EQ(job->state, JobState::inQueue);
  EXPECT_EQ(job->losses, 0U);
}

TEST_F(LostClaimTest, AShutdownDoesNotWaitForTheAnswer) {
  plan_.failCall("leases.claim", 1, fault::CallFault::done);
  plan_.failOperation("leases.claimed");
  submitHere("a");
  turn();
  dispatch_.dispatcher.stop();
  EXPECT_TRUE(executor_.runs.empty());
  EXPECT_EQ(dispatch_.pools.status("ep").counts.ready, 1U) << "no worker is reserved any more";
}

}  // namespace

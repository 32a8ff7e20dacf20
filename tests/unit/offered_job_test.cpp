// Tests of jobs claimed together with another step: with the insert for a waiting caller, before the insert, and with
// the report of the worker's last job (core/workers/dispatcher.h).
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/jobs/queue_signal.h"
#include "dispatcher_fixture.h"
#include "jobq/error.h"
#include "jobq/storage.h"
#include "testkit/forwarding_storage.h"

namespace jobq {
namespace {

/// Has the steps, each made of the two operations of the inner storage.
class OfferingStorage final : public testkit::ForwardingStorage {
 public:
  using ForwardingStorage::ForwardingStorage;

  Capabilities capabilities() const noexcept override {
    return hasStep ? Capabilities{Capability::insertAndClaim, Capability::finishAndClaim} : Capabilities{};
  }
  LeaseStore& leases() override { return finishing; }

  InsertedAndClaimed insertAndClaim(JobSpec&& job, const QueuePolicy& policy,
                                    const std::optional<Idempotency>& idempotency, const FusedClaim& claim) override {
    ++calls;
    if (fails) throw StorageError("the disk of this test has failed");
    InsertResult inserted = inner_.jobs().insert(JobSpec(job), policy, {idempotency});
    InsertedAndClaimed done{std::move(inserted), claimNow(claim)};
    if (losesAnswer) throw OutcomeUnknown("the connection of this test has broken");
    workers = claim.want.workers.size();
    return done;
  }

  std::vector<ClaimedJob> claimNow(const FusedClaim& claim) {
    return inner_.leases().claim(std::vector{claim.want}, claim.holder, claim.id).jobs;
  }
  class Leases final : public testkit::ForwardingLeases {
   public:
    explicit Leases(OfferingStorage& owner) : ForwardingLeases(owner.inner_.leases()), owner_(owner) {}
    FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                        const std::optional<FusedClaim>& claim) override {
      if (!claim) return inner_.finish(ends, durability, claim);
      ++owner_.calls;
      if (owner_.fails) throw StorageError("the disk of this test has failed");
      FinishResult done = inner_.finish(ends, durability, std::nullopt);
      done.claimed = owner_.claimNow(*claim);
      owner_.onFinish();
      return done;
    }

   private:
    OfferingStorage& owner_;
  };

  Leases finishing{*this};
  std::function<void()> onFinish = [] {};
  bool hasStep = true;
  bool fails = false;
  bool losesAnswer = false;
  int calls = 0;
  std::size_t workers = 0;  ///< in the last call
};

/// The endpoint `ep` has one worker, which is ready at once.
class OfferedJobTest : public DispatcherTest {
 protected:
  OfferedJobTest() { turn(); }

  std::optional<InsertResult> offer(const JobId& id) {
    job_ = JobSpec();
    job_.id = id;
    job_.endpoint = "ep";
    job_.input = "{}";
    return dispatch_.claimer.insertForCaller(job_, ArrivalPolicy(), std::nullopt);
  }
  void turn() {
    while (dispatch_.runPassIfDue()) continue;
  }
  WorkerCounts counts() const { return dispatch_.pools.status("ep").counts; }

  OfferingStorage offering_{*storage_};
  BusyExecutor executor_{running_};
  Dispatch dispatch_{offering_, queueSignal_, executor_, running_, clock_, log_, "other", endpoints(handlers_)};
  JobSpec job_;
};

TEST_F(OfferedJobTest, AnIdleWorkerGetsTheJobAtOnce) {
  const auto inserted = offer("a");
  ASSERT_TRUE(inserted);
  EXPECT_TRUE(std::holds_alternative<Inserted>(*inserted));
  EXPECT_EQ(executor_.runs.size(), 1U);
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(offering_.workers, 1U);
}

TEST_F(OfferedJobTest, WithoutAnIdleWorkerTheCallerStoresTheJob) {
  ASSERT_TRUE(offer("a"));
  EXPECT_FALSE(offer("b"));
  EXPECT_EQ(job_.id, "b");
  EXPECT_EQ(offering_.calls, 1);
}

TEST_F(OfferedJobTest, APausedEndpointGivesNoWorker) {
  auto paused = std::make_shared<Endpoint>(*endpoint(handlers_, "ep", 1, 1));
  paused->spec.paused = true;
  dispatch_.pools.setEndpoint(paused);
  EXPECT_FALSE(offer("a"));
  dispatch_.pools.retire("ep");
  EXPECT_FALSE(offer("a"));
  EXPECT_EQ(offering_.calls, 0);
}

TEST_F(OfferedJobTest, AStorageWithoutTheStepIsNotAsked) {
  offering_.hasStep = false;
  EXPECT_FALSE(offer("a"));
  EXPECT_EQ(counts().idle, 1U) << "no worker is reserved";
  EXPECT_EQ(offering_.calls, 0);
}

TEST_F(OfferedJobTest, AFailedStepFreesTheWorker) {
  offering_.fails = true;
  EXPECT_THROW((void)offer("a"), StorageError);
  EXPECT_EQ(counts().idle, 1U);
  EXPECT_TRUE(queueSignal_.isSet("ep"));
  offering_.fails = false;
  EXPECT_TRUE(offer("b"));
  EXPECT_EQ(executor_.runs.size(), 1U);
}

// The caller repeats the insert without an effect, and the dispatcher asks for the jobs of the claim.
TEST_F(OfferedJobTest, TheJobOfAStepWithoutAnAnswerRunsOnce) {
  offering_.losesAnswer = true;
  EXPECT_FALSE(offer("a"));
  EXPECT_EQ(job_.input, "{}") << "the caller stores the job";
  EXPECT_TRUE(std::holds_alternative<Inserted>(storage_->jobs().insert(JobSpec(job_), ArrivalPolicy())));
  EXPECT_EQ(counts().idle, 1U) << "a reserved worker counts as idle";
  turn();
  EXPECT_EQ(executor_.runs.size(), 1U);
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(storage_->jobs().find({"ep", "a"})->attempt, 1U);
}

// The dispatcher thread has to look for more: the claim has found as many jobs as workers.
TEST_F(OfferedJobTest, RemainingJobsAreClaimedByTheDispatcher) {
  submit("ep");
  ASSERT_TRUE(offer("a"));
  EXPECT_EQ(executor_.runs.size(), 1U);
  EXPECT_EQ(storage_->jobs().find({"ep", "a"})->state, JobState::inQueue);
  EXPECT_TRUE(queueSignal_.isSet("ep"));
  EXPECT_TRUE(dispatch_.runPassIfDue());
}

TEST_F(OfferedJobTest, AFencedOrStoppedNodeClaimsNothing) {
  dispatch_.life.setFenced(true);
  EXPECT_FALSE(offer("a"));
  dispatch_.life.setFenced(false);
  dispatch_.dispatcher.stop();
  EXPECT_FALSE(offer("a"));
  EXPECT_EQ(offering_.calls, 0);
}

/// Keeps the jobs that run before the insert.
class UnstoredExecutor final : public Executor {
 public:
  explicit UnstoredExecutor(RunningJobs& running) : busy(running), running_(running) {}
  void startWorker(const EndpointPtr& endpoint, const ReleasePtr& release, const WorkerId& worker,
                   WorkerEvents& events) override {
    busy.startWorker(endpoint, release, worker, events);
  }
  void assign(ClaimedJob job) override { busy.assign(std::move(job)); }
  void assignUnstored(ClaimedJob job, const std::shared_ptr<DeferredInsert>& insert) override {
    if (storesFirst) insert->store();
    if (fails) throw std::bad_alloc();
    onAssign();
    stopped = RunningJobs::Entry(running_, job.lease, insert).token().stop_requested();
    jobs.push_back(std::move(job));
    inserts.push_back(insert);
  }
  void stopWorker(const WorkerId& worker) override { busy.stopWorker(worker); }

  BusyExecutor busy;
  std::function<void()> onAssign = [] {};
  bool storesFirst = false;
  bool fails = false;
  bool stopped = false;  ///< the last run was stopped before its begin
  std::vector<ClaimedJob> jobs;
  std::vector<std::shared_ptr<DeferredInsert>> inserts;

 private:
  RunningJobs& running_;
};

/// The endpoint `ep` has one worker, which is ready, and its last runs were brief.
class UnstoredJobTest : public DispatcherTest {
 protected:
  UnstoredJobTest() {
    turn();
    for (int i = 0; i < DeferredInserts::kProof; ++i) dispatch_.inserts.noteRun("ep", true);
    queueSignal_.clear("ep");
  }

  std::shared_ptr<DeferredInsert> offer(const JobId& id, std::string input = "{}") {
    JobSpec job;
    job.id = id;
    job.endpoint = "ep";
    job.input = std::move(input);
    job.policy.ttl = Millis(20'000);
    return dispatch_.claimer.runForCaller(job, policy_);
  }
  void turn() {
    while (dispatch_.runPassIfDue()) continue;
  }
  WorkerCounts counts() const { return dispatch_.pools.status("ep").counts; }
  bool isAbsent(const JobId& id) { return !storage_->jobs().find({"ep", id}); }

  ArrivalPolicy policy_;
  UnstoredExecutor executor_{running_};
  Dispatch dispatch_{*storage_, queueSignal_, executor_, running_, clock_, log_, "other", endpoints(handlers_)};
};

TEST_F(UnstoredJobTest, AnIdleWorkerGetsTheJobBeforeTheStorage) {
  const auto insert = offer("a");
  ASSERT_TRUE(insert);
  ASSERT_EQ(executor_.jobs.size(), 1U);
  const ClaimedJob& job = executor_.jobs[0];
  EXPECT_EQ(job.lease, (LeaseRef{"a", 1}));
  EXPECT_EQ(job.input, "{}");
  EXPECT_EQ(job.runsFor, Millis(20'000)) << "the ttl is shorter than the execution timeout";
  EXPECT_EQ(executor_.inserts[0], insert);
  EXPECT_TRUE(isAbsent("a"));
  EXPECT_EQ(counts().running, 1U);
  EXPECT_FALSE(queueSignal_.isSet("ep"));
  insert->store();
  EXPECT_EQ(storage_->jobs().find({"ep", "a"})->workerId, job.worker);
}

TEST_F(UnstoredJobTest, OtherwiseTheJobIsStoredFirst) {
  EXPECT_FALSE(offer("large", std::string(65'537, ' '))) << "two copies of the input";
  queueSignal_.notify("ep", false);
  EXPECT_FALSE(offer("a")) << "other jobs may wait";
  queueSignal_.clear("ep");
  dispatch_.life.setFenced(true);
  EXPECT_FALSE(offer("a"));
  dispatch_.life.setFenced(false);
  dispatch_.inserts.noteRun("ep", false);
  EXPECT_FALSE(offer("a")) << "the last run was not brief";
  for (int i = 0; i < DeferredInserts::kProof; ++i) dispatch_.inserts.noteRun("ep", true);
  EXPECT_TRUE(offer("a"));
  EXPECT_FALSE(offer("b")) << "no worker is idle";
  dispatch_.dispatcher.stop();
  EXPECT_EQ(executor_.jobs.size(), 1U);
}

// The deleted endpoint's job goes to the queue, for the removal of the endpoint, whatever the handler returns.
TEST_F(UnstoredJobTest, TheDeletionOfTheEndpointStoresAndReleasesTheJob) {
  const auto insert = offer("a");
  ASSERT_TRUE(insert);
  const RunningJobs::Entry run(running_, {"a", 1}, insert);
  dispatch_.pools.retire("ep");
  turn();
  EXPECT_TRUE(run.token().stop_requested());
  EXPECT_EQ(storage_->jobs().find({"ep", "a"})->state, JobState::inQueue);
  EXPECT_FALSE(insert->storeEnded(Completed{"1"}));
  EXPECT_EQ(storage_->leases().finish({"a", 1}, Completed{"1"}), ReportResult::staleAttempt);
}

TEST_F(UnstoredJobTest, AStopBetweenTheReservationAndTheRunIsKept) {
  executor_.onAssign = [this] { running_.stop({"a", 1}); };
  ASSERT_TRUE(offer("a"));
  EXPECT_TRUE(executor_.stopped);
}

TEST_F(UnstoredJobTest, AStoppedDispatcherGivesNoJob) {
  dispatch_.dispatcher.stop();
  EXPECT_FALSE(offer("a"));
  EXPECT_EQ(counts().idle, 1U);
}

TEST_F(UnstoredJobTest, WithoutMemoryTheCallerStoresTheJob) {
  executor_.fails = true;
  EXPECT_FALSE(offer("a"));
  EXPECT_EQ(counts().idle, 1U) << "the worker is free again";
  EXPECT_TRUE(isAbsent("a"));
  dispatch_.inserts.storeAll();
  EXPECT_TRUE(isAbsent("a")) << "the job is not stored twice";
}

// An executor without the operation stores the job first. The job waits in its queue then.
TEST_F(UnstoredJobTest, AStoredJobWithoutAWorkerReturnsToTheQueue) {
  executor_.fails = executor_.storesFirst = true;
  EXPECT_TRUE(offer("a"));
  EXPECT_EQ(storage_->jobs().find({"ep", "a"})->state, JobState::inQueue);
  EXPECT_TRUE(queueSignal_.isSet("ep"));
  EXPECT_EQ(counts().idle, 1U);
}

/// The worker runs the job `job1`, and `job2` waits.
class NextJobTest : public OfferedJobTest {
 protected:
  NextJobTest() {
    submit("ep");
    submit("ep");
    turn();
    EXPECT_EQ(executor_.jobs.size(), 1U);
    offering_.calls = 0;
  }
  std::optional<FinishedRun> finish() {
    return dispatch_.claimer.finishAndClaim(executor_.jobs.back(), {executor_.jobs.back().lease, Completed{"1"}}, true);
  }
  JobState stateOf(const JobId& id) { return storage_->jobs().find({"ep", id})->state; }
};

TEST_F(NextJobTest, AWorkerGetsTheNextJobWithTheReport) {
  const auto done = finish();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->result, ReportResult::accepted);
  EXPECT_TRUE(done->hasNext);
  ASSERT_EQ(executor_.jobs.size(), 2U);
  EXPECT_EQ(executor_.jobs[1].lease, (LeaseRef{"job2", 1}));
  EXPECT_EQ(stateOf("job1"), JobState::completed);
  EXPECT_EQ(counts().running, 1U);
  dispatch_.supervisor.stopRun({"job2", 1});
  EXPECT_TRUE(executor_.runs[1]->token().stop_requested()) << "the pool knows the next job";
}

TEST_F(NextJobTest, ALastJobLeavesTheWorkerToBeReportedReady) {
  ASSERT_TRUE(finish()->hasNext);
  const auto last = finish();
  ASSERT_TRUE(last);
  EXPECT_FALSE(last->hasNext);
  EXPECT_EQ(counts().running, 1U);
  dispatch_.supervisor.workerReady("ep", executor_.jobs[1].worker);
  EXPECT_EQ(counts().idle, 1U);
  turn();
  EXPECT_FALSE(queueSignal_.isSet("ep"));
}

TEST_F(NextJobTest, WithoutASignalNoJobIsClaimed) {
  queueSignal_.clear("ep");
  EXPECT_FALSE(finish());
  EXPECT_EQ(offering_.calls, 0);
}

TEST_F(NextJobTest, ALeavingWorkerGetsNoJob) {
  auto newer = std::make_shared<Endpoint>(*endpoint(handlers_, "ep", 1, 1));
  dispatch_.pools.setEndpoint(newer);
  turn();  // a worker of the old release leaves after its job
  EXPECT_FALSE(finish());
  dispatch_.life.setFenced(true);
  EXPECT_FALSE(finish());
  EXPECT_EQ(offering_.calls, 0);
}

TEST_F(NextJobTest, AStorageWithoutTheStepIsNotAskedForANextJob) {
  offering_.hasStep = false;
  EXPECT_FALSE(finish());
  EXPECT_EQ(offering_.calls, 0);
  EXPECT_EQ(stateOf("job1"), JobState::inProgress);
}

TEST_F(NextJobTest, AFailedStepLeavesTheOutcomeToTheWorker) {
  offering_.fails = true;
  EXPECT_THROW((void)finish(), StorageError);
  EXPECT_EQ(stateOf("job1"), JobState::inProgress);
  EXPECT_EQ(stateOf("job2"), JobState::inQueue);
  offering_.fails = false;
  EXPECT_TRUE(finish()->hasNext);
}

// Between the claim and its acceptance the endpoint is deleted, or the life of the node ends.
TEST_F(NextJobTest, ALateNextJobGoesBack) {
  offering_.onFinish = [&] { dispatch_.pools.retire("ep"); };
  const auto done = finish();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->result, ReportResult::accepted);
  EXPECT_FALSE(done->hasNext);
  EXPECT_EQ(stateOf("job2"), JobState::inQueue);
  EXPECT_EQ(executor_.jobs.size(), 1U);
}

TEST_F(NextJobTest, ANextJobOfAnEarlierLifeGoesBack) {
  offering_.onFinish = [&] { dispatch_.life.join(); };
  EXPECT_FALSE(finish()->hasNext);
  EXPECT_EQ(stateOf("job2"), JobState::inQueue);
  EXPECT_TRUE(queueSignal_.isSet("ep"));
}

}  // namespace
}  // namespace jobq

// Tests of ends of jobs without an immediate report to a caller: the workers do not wait for the disk
// (core/jobs/run_reports.h, core/workers/dispatcher.h).
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/jobs/claimer.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/queue_signal.h"
#include "dispatcher_fixture.h"
#include "job_service_fixture.h"
#include "jobq/error.h"
#include "jobq/storage.h"
#include "testkit/forwarding_storage.h"

namespace jobq {
namespace {

/// Keeps whether each end is told.
class ToldEnds final : public Claimer {
 public:
  void claimForCaller(const EndpointId&) override {}
  std::optional<InsertResult> insertForCaller(JobSpec&, const QueuePolicy&,
                                              const std::optional<Idempotency>&) override {
    return std::nullopt;
  }
  std::shared_ptr<DeferredInsert> runForCaller(const JobSpec&, const QueuePolicy&) override { return nullptr; }
  std::optional<FinishedRun> finishAndClaim(const ClaimedJob&, const EndedAttempt&, bool isTold) override {
    told.push_back(isTold);
    return FinishedRun{};
  }

  std::vector<bool> told;
};

TEST_F(JobServiceTest, AnEndIsToldToWaitingCallersAndWebhooksOnly) {
  ToldEnds ends;
  claimer_.bind(ends);
  ClaimedJob ended;
  ended.endpoint = "ep";
  ended.lease = {"a", 1};
  (void)reports_.finishAndClaim(ended, {ended.lease, Completed{"1"}}, nullptr);
  {
    const CompletionNotifier::Waiter other(watch_, {"ep", "b"});
    (void)reports_.finishAndClaim(ended, {ended.lease, Completed{"1"}}, nullptr);
    const CompletionNotifier::Waiter streams(watch_, {"ep", "a"}, CompletionNotifier::Interest::chunks);
    (void)reports_.finishAndClaim(ended, {ended.lease, Completed{"1"}}, nullptr);
  }
  (void)reports_.finishAndClaim(ended, {ended.lease, Completed{"1"}}, nullptr);
  ended.webhook = "http://h/done";
  (void)reports_.finishAndClaim(ended, {ended.lease, Completed{"1"}}, nullptr);
  EXPECT_EQ(ends.told, (std::vector<bool>{false, false, true, false, true}));
}

/// Has the step, made of two operations of the inner store.
class UnsyncedLeases final : public testkit::ForwardingLeases {
 public:
  using ForwardingLeases::ForwardingLeases;

  FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                      const std::optional<FusedClaim>& claim) override {
    if (durability == Durability::unsynced) {
      workers.push_back(claim ? claim->want.workers.size() : 0);
      if (fails) throw StorageError("the disk of this test has failed");
    }
    FinishResult done = inner_.finish(ends, Durability::synced, std::nullopt);
    if (claim) done.claimed = inner_.claim(std::vector{claim->want}, claim->holder, claim->id).jobs;
    return done;
  }

  bool fails = false;
  std::vector<std::size_t> workers;  ///< in each unsynced call
};

class UnsyncedStorage final : public testkit::ForwardingStorage {
 public:
  using ForwardingStorage::ForwardingStorage;
  LeaseStore& leases() override { return unsynced; }
  Capabilities capabilities() const noexcept override { return shown; }

  UnsyncedLeases unsynced{inner_.leases()};
  Capabilities shown{Capability::finishAndClaim, Capability::finishUnsynced};
};

/// The only worker of the endpoint `ep` runs the job `job1`, and `job2` waits.
class UnsyncedEndTest : public DispatcherTest {
 protected:
  UnsyncedEndTest() {
    turn();
    submit("ep");
    submit("ep");
    turn();
    EXPECT_EQ(executor_.jobs.size(), 1U);
  }

  std::optional<FinishedRun> finish(bool isTold) {
    return dispatch_.claimer.finishAndClaim(executor_.jobs.back(), {executor_.jobs.back().lease, Completed{"1"}},
                                            isTold);
  }
  void turn() {
    while (dispatch_.runPassIfDue()) continue;
  }
  JobState stateOf(const JobId& id) { return storage_->jobs().find({"ep", id})->state; }

  UnsyncedStorage offering_{*storage_};
  BusyExecutor executor_{running_};
  Dispatch dispatch_{offering_, queueSignal_, executor_, running_, clock_, log_, "other", endpoints(handlers_)};
};

TEST_F(UnsyncedEndTest, TheWorkerGetsTheNextJob) {
  const auto done = finish(false);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->result, ReportResult::accepted);
  EXPECT_TRUE(done->hasNext);
  ASSERT_EQ(executor_.jobs.size(), 2U);
  EXPECT_EQ(executor_.jobs[1].lease, (LeaseRef{"job2", 1}));
  EXPECT_EQ(stateOf("job1"), JobState::completed);
  EXPECT_EQ(offering_.unsynced.workers, std::vector<std::size_t>{1});
}

TEST_F(UnsyncedEndTest, WithoutANextJobTheOutcomeIsUnsyncedToo) {
  queueSignal_.clear("ep");
  const auto done = finish(false);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->result, ReportResult::accepted);
  EXPECT_FALSE(done->hasNext);
  EXPECT_EQ(stateOf("job1"), JobState::completed);
  EXPECT_EQ(stateOf("job2"), JobState::inQueue);
  EXPECT_EQ(offering_.unsynced.workers, std::vector<std::size_t>{0});
}

TEST_F(UnsyncedEndTest, AReportedEndIsSynced) {
  offering_.shown = {Capability::finishUnsynced};
  EXPECT_FALSE(finish(true)) << "the storage has no such step";
  EXPECT_TRUE(offering_.unsynced.workers.empty());
  EXPECT_EQ(stateOf("job1"), JobState::inProgress);
}

TEST_F(UnsyncedEndTest, AStorageWithoutTheStepIsNotAsked) {
  offering_.shown = {};
  EXPECT_FALSE(finish(false));
  EXPECT_TRUE(offering_.unsynced.workers.empty());
  EXPECT_EQ(stateOf("job1"), JobState::inProgress);
}

TEST_F(UnsyncedEndTest, AStorageWithTheOtherStepGivesTheNextJobToo) {
  offering_.shown = {Capability::finishAndClaim};
  EXPECT_TRUE(finish(false)->hasNext);
  EXPECT_EQ(stateOf("job1"), JobState::completed);
  EXPECT_EQ(stateOf("job2"), JobState::inProgress);
}

TEST_F(UnsyncedEndTest, AFailedStepLeavesTheOutcomeToTheWorker) {
  offering_.unsynced.fails = true;
  EXPECT_THROW((void)finish(false), StorageError);
  EXPECT_EQ(stateOf("job1"), JobState::inProgress);
  offering_.unsynced.fails = false;
  EXPECT_TRUE(finish(false)->hasNext);
}

TEST_F(UnsyncedEndTest, ANonClaimingNodeLeavesTheOutcomeToTheWorker) {
  dispatch_.life.setFenced(true);
  EXPECT_FALSE(finish(false));
  EXPECT_TRUE(offering_.unsynced.workers.empty());
}

}  // namespace
}  // namespace jobq

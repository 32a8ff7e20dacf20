// Tests of jobs that run before the insert: the insert (core/jobs/deferred_insert.h), the timer
// (core/workers/deferred_inserts.h) and the wait of the caller.
#include "core/jobs/deferred_insert.h"
#include "core/jobs/claimer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/run_stopper.h"
#include "core/workers/deferred_inserts.h"
#include "deferred_insert_fixture.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "tests/support/fakes.h"
#include "tests/support/held_caller.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using InsertState = DeferredInsert::State;
using test::briefJob;
using test::holdsSoon;
using test::kSoon;
using test::makeInsert;
using testing::Contains;
using testing::HasSubstr;

class DeferredInsertTest : public testing::Test {
 protected:
  std::optional<Job> find(const JobId& id) { return storage_.real->jobs().find({"ep", id}); }

  test::UnitStorage storage_;
  const std::shared_ptr<DeferredInsert> insert_ = makeInsert(storage_, "a");
};

TEST_F(DeferredInsertTest, TheStorageHasNoJobBefore) {
  EXPECT_NE(insert_->state(), InsertState::stored);
  EXPECT_FALSE(find("a"));
}

TEST_F(DeferredInsertTest, AJobIsStoredOnceDuringTheRun) {
  storage_.clock.advance(Millis(3));
  insert_->store();
  EXPECT_EQ(insert_->state(), InsertState::stored);
  EXPECT_EQ(find("a")->state, JobState::inProgress);
  EXPECT_EQ(find("a")->startedAt, storage_.clock.now() - Millis(3));
  insert_->store();
  EXPECT_FALSE(insert_->storeEnded(Completed{"1"})) << "the outcome is reported on the usual way";
  EXPECT_EQ(find("a")->state, JobState::inProgress);
}

TEST_F(DeferredInsertTest, AJobIsStoredWithTheOutcome) {
  EXPECT_TRUE(insert_->storeEnded(Failed{"no", ""}));
  EXPECT_EQ(insert_->state(), InsertState::stored);
  insert_->store();
  EXPECT_FALSE(insert_->storeEnded(Completed{"1"}));
  EXPECT_EQ(find("a")->state, JobState::failed);
}

TEST_F(DeferredInsertTest, ARefusedJobIsLost) {
  storage_.faults.failNext("jobs.insertBegun");
  EXPECT_THROW(insert_->store(), StorageError);
  EXPECT_EQ(insert_->state(), InsertState::lost);
  EXPECT_THROW((void)insert_->storeEnded(Completed{"1"}), StorageError);
  EXPECT_THROW(insert_->store(), StorageError);
  EXPECT_EQ(storage_.faults.calls(), 1U);
  EXPECT_FALSE(find("a"));
}

TEST_F(DeferredInsertTest, ADiscardedJobIsAbsent) {
  insert_->discard();
  insert_->store();
  EXPECT_EQ(insert_->state(), InsertState::discarded);
  EXPECT_FALSE(find("a"));
  const auto stored = makeInsert(storage_, "b");
  stored->store();
  stored->discard();
  EXPECT_EQ(stored->state(), InsertState::stored);
}

// The second thread must neither store the job again nor go on before the storage has the job.
TEST_F(DeferredInsertTest, TheOutcomeWaitsForAnInsertUnderWay) {
  storage_.faults.hold("jobs.insertBegun");
  auto storing = std::async(std::launch::async, [this] { insert_->store(); });
  ASSERT_TRUE(holdsSoon([this] { return storage_.faults.isHolding(); }));
  auto ending = std::async(std::launch::async, [this] { return insert_->storeEnded(Completed{"1"}); });
  EXPECT_NE(insert_->state(), InsertState::stored);
  storage_.faults.letGo();
  ASSERT_EQ(storing.wait_for(kSoon), std::future_status::ready);
  ASSERT_EQ(ending.wait_for(kSoon), std::future_status::ready);
  EXPECT_FALSE(ending.get());
  EXPECT_EQ(find("a")->state, JobState::inProgress);
}

class DeferredInsertsTest : public DeferredInsertTest {
 protected:
  void proveBrief() {
    for (int i = 0; i < DeferredInserts::kProof; ++i) inserts_.noteRun("ep", true);
  }

  CompletionNotifier completions_{storage_.clock};
  DeferredInserts inserts_{*storage_, completions_, storage_.clock, storage_.log};
};

TEST_F(DeferredInsertsTest, OnlyEndpointsWithBriefRunsDeferInserts) {
  EXPECT_FALSE(inserts_.mayDefer("ep"));
  for (int i = 1; i < DeferredInserts::kProof; ++i) inserts_.noteRun("ep", true);
  EXPECT_FALSE(inserts_.mayDefer("ep"));
  inserts_.noteRun("ep", true);
  EXPECT_TRUE(inserts_.mayDefer("ep"));
  EXPECT_FALSE(inserts_.mayDefer("other"));
  inserts_.noteRun("ep", false);
  EXPECT_FALSE(inserts_.mayDefer("ep"));
  proveBrief();
  inserts_.stop();
  EXPECT_FALSE(inserts_.mayDefer("ep")) << "no thread stores a job after the stop";
}

// A run is long now and then because its thread waits for a processor.
TEST_F(DeferredInsertsTest, FewLongRunsAmongBriefRunsChangeNothing) {
  for (int i = 0; i < 200; ++i) inserts_.noteRun("ep", i % 20 != 0);
  EXPECT_TRUE(inserts_.mayDefer("ep"));
  for (int i = 0; i < 4; ++i) inserts_.noteRun("ep", false);
  EXPECT_FALSE(inserts_.mayDefer("ep"));
  for (int i = 0; i < 200; ++i) inserts_.noteRun("ep", i % 5 != 0);
  EXPECT_FALSE(inserts_.mayDefer("ep"));
}

TEST_F(DeferredInsertsTest, ALongRunIsStoredInTheMillisecondOfTheDeadline) {
  inserts_.start();
  proveBrief();
  inserts_.watch(insert_);
  storage_.clock.awaitWaiter(DeferredInserts::kLatest, DeferredInserts::kLatest);
  storage_.clock.advance(DeferredInserts::kLatest - Millis(1));
  storage_.clock.awaitWaiter(Millis(1), Millis(1));
  EXPECT_NE(insert_->state(), InsertState::stored);
  storage_.clock.advance(Millis(1));
  ASSERT_TRUE(holdsSoon([this] { return insert_->state() == InsertState::stored; }));
  EXPECT_EQ(find("a")->startedAt, storage_.clock.now() - DeferredInserts::kLatest);
  EXPECT_FALSE(inserts_.mayDefer("ep")) << "the next jobs do not wait for the end of the run";
}

TEST_F(DeferredInsertsTest, ABriefRunLeavesTheTimerNothingToDo) {
  inserts_.start();
  proveBrief();
  inserts_.watch(insert_);
  storage_.clock.awaitWaiter(DeferredInserts::kLatest, DeferredInserts::kLatest);
  EXPECT_TRUE(insert_->storeEnded(Completed{"1"}));
  storage_.clock.advance(DeferredInserts::kLatest);
  EXPECT_TRUE(inserts_.mayDefer("ep"));
  EXPECT_EQ(storage_.faults.calls(), 1U);
}

// A wake for each run would cost a fast caller a change of threads for each call.
TEST_F(DeferredInsertsTest, TheTimerWakesForTheFirstContinuingRun) {
  inserts_.start();
  inserts_.watch(insert_);
  storage_.clock.awaitWaiter(DeferredInserts::kLatest, DeferredInserts::kLatest);
  EXPECT_TRUE(insert_->storeEnded(Completed{"1"}));
  storage_.clock.advance(Millis(1));
  const auto ended = test::makeInsert(storage_, "b");
  inserts_.watch(ended);
  EXPECT_TRUE(ended->storeEnded(Completed{"1"}));
  storage_.clock.advance(Millis(2));
  const auto goesOn = test::makeInsert(storage_, "c");
  inserts_.watch(goesOn);
  storage_.clock.advance(DeferredInserts::kLatest - Millis(3));
  storage_.clock.awaitWaiter(Millis(3), Millis(3));
  storage_.clock.advance(Millis(3));
  EXPECT_TRUE(holdsSoon([&] { return goesOn->state() == InsertState::stored; }));
}

class LockedStopper final : public RunStopper {
 public:
  void stopRun(const LeaseRef& lease) override {
    Lock lock(mutex_);
    stopped_.push_back(lease);
  }
  bool has(const LeaseRef& lease) {
    Lock lock(mutex_);
    return std::find(stopped_.begin(), stopped_.end(), lease) != stopped_.end();
  }

 private:
  Mutex mutex_;
  std::vector<LeaseRef> stopped_ JOBQ_GUARDED_BY(mutex_);
};

/// A job is refused by the insert of the timer, or before by that of a report.
class RefusedJobTest : public DeferredInsertsTest, public testing::WithParamInterface<bool> {};

// No sweep and no execution timeout would stop the run, because the storage does not have the job.
TEST_P(RefusedJobTest, TheCallerIsWokenAndTheRunIsStopped) {
  storage_.faults.failNext("jobs.insertBegun");
  LockedStopper stopper;
  inserts_.setStopper(stopper);
  if (GetParam()) {
    EXPECT_THROW(insert_->store(), StorageError);
  }
  CompletionNotifier::Waiter waiter(completions_, {"ep", "a"});
  inserts_.start();
  inserts_.watch(insert_);
  storage_.clock.awaitWaiter(DeferredInserts::kLatest, DeferredInserts::kLatest);
  storage_.clock.advance(DeferredInserts::kLatest);
  test::HeldCaller caller;
  EXPECT_TRUE(caller.awaitEvent(waiter, storage_.clock.now() + Millis(60'000)));
  EXPECT_EQ(insert_->state(), InsertState::lost);
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("job.unstored")));
  EXPECT_TRUE(holdsSoon([&] { return stopper.has({"a", 1}); }));
  inserts_.stop();
}

INSTANTIATE_TEST_SUITE_P(Ways, RefusedJobTest, testing::Bool());

// A shutdown releases the running jobs behind storeAll(), so the insert of the timer's thread must have ended.
TEST_F(DeferredInsertsTest, StoreAllWaitsForTheTimer) {
  storage_.faults.hold("jobs.insertBegun");
  inserts_.start();
  inserts_.watch(insert_);
  storage_.clock.awaitWaiter(DeferredInserts::kLatest, DeferredInserts::kLatest);
  storage_.clock.advance(DeferredInserts::kLatest);
  ASSERT_TRUE(holdsSoon([this] { return storage_.faults.isHolding(); }));
  auto storing = std::async(std::launch::async, [this] {
    inserts_.storeAll();
    return insert_->state();
  });
  storage_.faults.letGo();
  ASSERT_EQ(storing.wait_for(kSoon), std::future_status::ready);
  EXPECT_EQ(storing.get(), InsertState::stored);
}

TEST_F(DeferredInsertsTest, AStopStoresTheRemainingJobs) {
  inserts_.start();
  inserts_.watch(insert_);
  inserts_.stop();
  EXPECT_EQ(insert_->state(), InsertState::stored);
}

/// Runs the job of each caller at once, without a worker.
class UnstoredClaimer final : public Claimer {
 public:
  explicit UnstoredClaimer(test::UnitStorage& storage) : storage_(storage) {}
  void claimForCaller(const EndpointId&) override { ADD_FAILURE() << "the job runs"; }
  std::optional<InsertResult> insertForCaller(JobSpec&, const QueuePolicy&,
                                              const std::optional<Idempotency>&) override {
    return std::nullopt;
  }
  std::shared_ptr<DeferredInsert> runForCaller(const JobSpec& job, const QueuePolicy&) override {
    return insert = makeInsert(storage_, job.id);
  }
  std::optional<FinishedRun> finishAndClaim(const ClaimedJob&, const EndedAttempt&, bool) override {
    return std::nullopt;
  }

  std::shared_ptr<DeferredInsert> insert;

 private:
  test::UnitStorage& storage_;
};

class DeferredWaitTest : public DeferredInsertTest {
 protected:
  DeferredWaitTest() {
    endpoint_.spec.id = "ep";
    endpoint_.policy = &storage_.policy;
  }
  JobService::AwaitedSubmission submit(const std::optional<Idempotency>& idempotency = std::nullopt) {
    return jobs_.submitAwaited(briefJob("j"), endpoint_, idempotency, Millis(5'000));
  }

  Endpoint endpoint_;
  UnstoredClaimer claimer_{storage_};
  QueueSignal queueSignal_{{"ep"}};
  CompletionNotifier watch_{storage_.clock};
  test::CountingDeliveries deliveries_;
  JobService jobs_{*storage_, queueSignal_, claimer_, watch_, deliveries_};
  test::HeldCaller caller_;
};

TEST_F(DeferredWaitTest, AWaiterGetsTheOutcome) {
  auto submission = submit();
  EXPECT_TRUE(std::holds_alternative<Inserted>(submission.inserted));
  EXPECT_FALSE(submission.isDurable);
  EXPECT_FALSE(submission.wait->poll(caller_.waitingCaller()));
  EXPECT_FALSE(find("j"));
  EXPECT_TRUE(claimer_.insert->storeEnded(Completed{"7"}));
  watch_.announce("j");
  EXPECT_EQ(caller_.complete(*submission.wait).job->output, "7");
}

// The answer of a wait that is over has the id, so the storage gets the job first.
TEST_F(DeferredWaitTest, AnAnswerBeforeTheEndShowsAStoredJob) {
  auto submission = submit();
  EXPECT_FALSE(submission.wait->poll(caller_.waitingCaller()));
  storage_.clock.advance(Millis(5'000));
  const auto answer = caller_.complete(*submission.wait);
  ASSERT_TRUE(answer.job);
  EXPECT_EQ(answer.job->state, JobState::inProgress);
  EXPECT_EQ(claimer_.insert->state(), InsertState::stored);
}

// A stream reads chunks, and the reads have no sign of a job before the insert.
TEST_F(DeferredWaitTest, ACallerReadingTheJobNeedsAnInsertFirst) {
  const auto submission =
      jobs_.submitAwaited(briefJob("j"), endpoint_, std::nullopt, Millis(5'000), JobService::CallerReads::job);
  EXPECT_FALSE(claimer_.insert);
  EXPECT_TRUE(find("j"));
}

TEST_F(DeferredWaitTest, ADiscardedJobIsGone) {
  auto submission = submit();
  EXPECT_FALSE(submission.wait->poll(caller_.waitingCaller()));
  claimer_.insert->discard();
  watch_.announceAllOf("ep");
  EXPECT_FALSE(caller_.complete(*submission.wait).job);
}

TEST_F(DeferredWaitTest, WithoutAStorageThereIsNoAnswer) {
  auto submission = submit();
  EXPECT_FALSE(submission.wait->poll(caller_.waitingCaller()));
  storage_.clock.advance(Millis(5'000));
  storage_.faults.failOperation("jobs.insertBegun");
  EXPECT_THROW((void)caller_.complete(*submission.wait), StorageError);
}

TEST_F(DeferredWaitTest, AnIdempotencyKeyNeedsAnInsertFirst) {
  const auto submission = submit(Idempotency{"k", "hash"});
  EXPECT_FALSE(claimer_.insert);
  EXPECT_TRUE(submission.isDurable);
  EXPECT_TRUE(find("j"));
}

}  // namespace
}  // namespace jobq

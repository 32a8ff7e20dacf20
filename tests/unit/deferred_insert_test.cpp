// Tests of jobs that run before their insert: the insert (core/jobs/deferred_insert.h), the timer
// (core/workers/deferred_inserts.h), the wait of the caller, and the run itself.
#include "core/jobs/deferred_insert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/jobs/job_service.h"
#include "core/workers/deferred_inserts.h"
#include "executor_fixture.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "tests/support/held_caller.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using test::holdsSoon;
using test::kSoon;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

JobSpec spec(const JobId& id) {
  JobSpec job;
  job.id = id;
  job.endpoint = "ep";
  job.input = "{}";
  return job;
}

std::shared_ptr<DeferredInsert> makeInsert(test::UnitStorage& storage, const JobId& id) {
  return std::make_shared<DeferredInsert>(*storage, storage.clock, spec(id), storage.policy,
                                          FirstRun{"w", storage.life->holder(), {}});
}

class DeferredInsertTest : public testing::Test {
 protected:
  std::optional<Job> find(const JobId& id) { return storage_.real->jobs().find({"ep", id}); }

  test::UnitStorage storage_;
  const std::shared_ptr<DeferredInsert> insert_ = makeInsert(storage_, "a");
};

TEST_F(DeferredInsertTest, TheStorageHasNoJobBefore) {
  EXPECT_FALSE(insert_->isStored());
  EXPECT_FALSE(find("a"));
}

TEST_F(DeferredInsertTest, AJobIsStoredOnceAsItRuns) {
  storage_.clock.advance(Millis(3));
  insert_->store();
  EXPECT_TRUE(insert_->isStored());
  EXPECT_EQ(find("a")->state, JobState::inProgress);
  EXPECT_EQ(find("a")->startedAt, storage_.clock.now() - Millis(3));
  insert_->store();
  EXPECT_FALSE(insert_->storeEnded(Completed{"1"})) << "the outcome is reported on the usual way";
  EXPECT_EQ(find("a")->state, JobState::inProgress);
}

TEST_F(DeferredInsertTest, AJobIsStoredWithItsOutcome) {
  EXPECT_TRUE(insert_->storeEnded(Failed{"no", ""}));
  EXPECT_TRUE(insert_->isStored());
  insert_->store();
  EXPECT_FALSE(insert_->storeEnded(Completed{"1"}));
  EXPECT_EQ(find("a")->state, JobState::failed);
}

TEST_F(DeferredInsertTest, AFailedInsertCanBeRepeated) {
  storage_.faults.failNext("jobs.insertRun");
  EXPECT_THROW(insert_->store(), StorageError);
  EXPECT_FALSE(insert_->isStored());
  storage_.faults.failNext("jobs.insertRun");
  EXPECT_THROW((void)insert_->storeEnded(Completed{"1"}), StorageError);
  EXPECT_TRUE(insert_->storeEnded(Completed{"1"}));
  EXPECT_EQ(find("a")->output, "1");
}

// The second thread must neither store the job again nor go on before the storage has the job.
TEST_F(DeferredInsertTest, TheOutcomeWaitsForAnInsertUnderWay) {
  storage_.faults.hold("jobs.insertRun");
  auto storing = std::async(std::launch::async, [this] { insert_->store(); });
  ASSERT_TRUE(holdsSoon([this] { return storage_.faults.isHolding(); }));
  auto ending = std::async(std::launch::async, [this] { return insert_->storeEnded(Completed{"1"}); });
  EXPECT_FALSE(insert_->isStored());
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

  DeferredInserts inserts_{*storage_, storage_.clock, storage_.log};
};

TEST_F(DeferredInsertsTest, OnlyBriefRunsInARowDeferInserts) {
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
  EXPECT_FALSE(inserts_.mayDefer("ep")) << "after the stop nothing would store the job";
}

TEST_F(DeferredInsertsTest, ALongRunIsStoredInItsMillisecond) {
  inserts_.start();
  proveBrief();
  inserts_.watch(insert_);
  storage_.clock.awaitWaiter(DeferredInserts::kLatest, DeferredInserts::kLatest);
  storage_.clock.advance(DeferredInserts::kLatest - Millis(1));
  storage_.clock.awaitWaiter(Millis(1), Millis(1));
  EXPECT_FALSE(insert_->isStored());
  storage_.clock.advance(Millis(1));
  ASSERT_TRUE(holdsSoon([this] { return insert_->isStored(); }));
  EXPECT_EQ(find("a")->startedAt, storage_.clock.now() - DeferredInserts::kLatest);
  EXPECT_FALSE(inserts_.mayDefer("ep")) << "the next jobs do not wait for the end of this run";
}

TEST_F(DeferredInsertsTest, ABriefRunLeavesTheTimerNothingToDo) {
  inserts_.start();
  proveBrief();
  inserts_.watch(insert_);
  EXPECT_TRUE(insert_->storeEnded(Completed{"1"}));
  storage_.clock.awaitWaiter(DeferredInserts::kLatest, DeferredInserts::kLatest);
  storage_.clock.advance(DeferredInserts::kLatest);
  EXPECT_TRUE(inserts_.mayDefer("ep"));
  EXPECT_EQ(storage_.faults.calls(), 1U);
}

TEST_F(DeferredInsertsTest, AFailedInsertIsTriedAgain) {
  storage_.faults.failNext("jobs.insertRun");
  inserts_.start();
  inserts_.watch(insert_);
  storage_.clock.awaitWaiter(DeferredInserts::kLatest, DeferredInserts::kLatest);
  storage_.clock.advance(DeferredInserts::kLatest);
  storage_.clock.awaitWaiter(Millis(500), Millis(500));
  EXPECT_FALSE(insert_->isStored());
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("cannot be stored yet")));
  storage_.clock.advance(Millis(500));
  ASSERT_TRUE(holdsSoon([this] { return insert_->isStored(); }));
}

TEST_F(DeferredInsertsTest, AStopStoresWhatIsLeft) {
  inserts_.start();
  inserts_.watch(insert_);
  inserts_.stop();
  EXPECT_TRUE(insert_->isStored());
}

/// Runs on an executor whose worker `w` is ready.
class DeferredRunTest : public testing::Test, protected test::ExecutorFixture {
 protected:
  DeferredRunTest() { startWorker(); }

  /// Begins the run of the job.
  std::shared_ptr<DeferredInsert> run(const JobId& id, Millis runsFor = Millis(5'000)) {
    EXPECT_TRUE(events.has(1));
    auto insert = makeInsert(storage, id);
    ClaimedJob job;
    job.lease = {id, 1};
    job.endpoint = "ep";
    job.worker = "w";
    job.input = "{}";
    job.runsFor = runsFor;
    executor.assignUnstored(std::move(job), insert);
    return insert;
  }
  bool isAbsent(const JobId& id) { return !storage.real->jobs().find({"ep", id}); }
  std::uint64_t callsOf(auto&& act) {
    const std::uint64_t before = storage.faults.calls();
    act();
    return storage.faults.calls() - before;
  }
};

TEST_F(DeferredRunTest, ABriefRunCallsTheStorageOnce) {
  handlers.run = [this](std::string_view, JobContext& context) {
    EXPECT_EQ(context.attempt(), 1U);
    EXPECT_TRUE(isAbsent("a"));
    return std::string("[1.0]");
  };
  const std::uint64_t calls = callsOf([this] {
    run("a");
    ASSERT_TRUE(events.has(2));
  });
  EXPECT_EQ(calls, 1U);
  EXPECT_EQ(find("a").state, JobState::completed);
  EXPECT_EQ(find("a").output, "[1.0]");
  EXPECT_EQ(find("a").workerId, "w");
}

TEST_F(DeferredRunTest, AHandlerThatReadsTheIdHasAStoredJob) {
  handlers.run = [this](std::string_view, JobContext& context) {
    EXPECT_EQ(context.id(), "a");
    EXPECT_EQ(find("a").state, JobState::inProgress);
    return std::string("1");
  };
  run("a");
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(find("a").state, JobState::completed);
}

TEST_F(DeferredRunTest, ReportsComeBehindTheInsert) {
  handlers.run = [](std::string_view, JobContext& context) {
    context.emit("1");
    context.progress("2");
    context.log(LogLevel::information, "three");
    return std::string("4");
  };
  run("a");
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(storage.real->chunks().read({"ep", "a"}, 0, 1'000)->chunks.size(), 1U);
  EXPECT_EQ(storage.real->chunks().readLog({"ep", "a"})->size(), 1U);
  EXPECT_EQ(find("a").output, "4");
}

TEST_F(DeferredRunTest, RunsThatAreLongOrKnownAreNotBrief) {
  ASSERT_TRUE(events.has(1));
  const auto provesBrief = [this](const test::HandlerBody& body) {
    handlers.run = body;
    for (int i = 0; i < DeferredInserts::kProof; ++i) {
      const std::size_t before = events.all().size();
      give("job" + std::to_string(storage.faults.calls()));
      EXPECT_TRUE(events.has(before + 1));
    }
    return inserts.mayDefer("ep");
  };
  EXPECT_TRUE(provesBrief([](std::string_view, JobContext&) { return std::string("1"); }));
  EXPECT_FALSE(provesBrief([this](std::string_view, JobContext&) {
    storage.clock.advance(DeferredInserts::kBrief);
    return std::string("1");
  }));
  EXPECT_TRUE(provesBrief([](std::string_view, JobContext&) { return std::string("1"); }));
  EXPECT_FALSE(provesBrief([](std::string_view, JobContext& context) { return "\"" + context.id() + "\""; }));
}

TEST_F(DeferredRunTest, AnOutcomeIsOfferedUntilTheStorageTakesIt) {
  storage.faults.failNext("jobs.insertRun");
  run("a");
  ASSERT_TRUE(holdsSoon([this] { return !storage.log.lines().empty(); }));
  EXPECT_TRUE(isAbsent("a"));
  storage.clock.advance(Millis(60'000));
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(find("a").state, JobState::completed);
}

TEST_F(DeferredRunTest, AnOutcomeBehindTheDeadlineIsATimeout) {
  handlers.run = [this](std::string_view, JobContext&) {
    storage.clock.advance(Millis(600'000));
    return std::string("1");
  };
  run("a", Millis(600'000));
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(find("a").state, JobState::timedOut);
}

// The lease keeper asks the storage about the running jobs, and stops those that the storage does not have.
TEST_F(DeferredRunTest, AnUnstoredJobIsNoRunningJobOfTheStorage) {
  std::promise<void> begun;
  std::promise<void> goesOn;
  handlers.run = [&](std::string_view, JobContext&) {
    begun.set_value();
    EXPECT_EQ(goesOn.get_future().wait_for(kSoon), std::future_status::ready);
    return std::string("1");
  };
  const auto insert = run("a");
  ASSERT_EQ(begun.get_future().wait_for(kSoon), std::future_status::ready);
  EXPECT_THAT(running.leases(), IsEmpty());
  insert->store();
  EXPECT_EQ(running.leases().size(), 1U);
  goesOn.set_value();
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(find("a").state, JobState::completed);
}

TEST_F(DeferredRunTest, AShutdownPutsARunningJobIntoTheQueue) {
  std::promise<void> begun;
  handlers.run = [&](std::string_view, JobContext& context) {
    begun.set_value();
    EXPECT_TRUE(holdsSoon([&] { return context.stopToken().stop_requested(); }));
    return std::string("1");
  };
  inserts.watch(run("a"));
  ASSERT_EQ(begun.get_future().wait_for(kSoon), std::future_status::ready);
  EXPECT_EQ(executor.stop(Millis(0)), 0U);
  EXPECT_EQ(find("a").state, JobState::inQueue);
  EXPECT_EQ(find("a").losses, 0U);
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
  std::optional<FinishedRun> finishAndClaim(const ClaimedJob&, const Outcome&) override { return std::nullopt; }

  std::shared_ptr<DeferredInsert> insert;

 private:
  test::UnitStorage& storage_;
};

class DeferredWaitTest : public DeferredInsertTest {
 protected:
  DeferredWaitTest() {
    endpoint_.spec.id = "ep";
    endpoint_.policy = &storage_.policy;
    queueSignal_.setClaimer(claimer_);
  }
  JobService::AwaitedSubmission submit(const std::optional<Idempotency>& idempotency = std::nullopt) {
    return jobs_.submitAwaited(spec("j"), endpoint_, idempotency, Millis(5'000));
  }

  Endpoint endpoint_;
  UnstoredClaimer claimer_{storage_};
  QueueSignal queueSignal_{{"ep"}};
  CompletionNotifier watch_{storage_.clock};
  test::CountingDeliveries deliveries_;
  JobService jobs_{*storage_, queueSignal_, watch_, deliveries_};
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
  EXPECT_TRUE(claimer_.insert->isStored());
}

TEST_F(DeferredWaitTest, WithoutAStorageThereIsNoAnswer) {
  auto submission = submit();
  EXPECT_FALSE(submission.wait->poll(caller_.waitingCaller()));
  storage_.clock.advance(Millis(5'000));
  storage_.faults.failOperation("jobs.insertRun");
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

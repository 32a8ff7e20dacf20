// Conformance: every storage follows the table in sdk/include/jobq/transitions.h, and an absent job is absent for every
// operation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/log.h"
#include "jobq/transitions.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

inline constexpr Trigger kAllTriggers[] = {Trigger::claim,   Trigger::complete, Trigger::fail,
                                           Trigger::timeOut, Trigger::cancel,   Trigger::retry,
                                           Trigger::lose,    Trigger::loseLast, Trigger::release};

class StateSuite : public StorageSuite {
 protected:
  /// Brings a job into `state`. `maxAttempts` decides the result of a loss.
  void bringTo(const JobId& id, JobState state, std::uint32_t maxAttempts) {
    JobSpec job = spec(id);
    job.policy.executionTimeout = Millis(300'000);
    job.maxAttempts = maxAttempts;
    submit(std::move(job));
    if (state == JobState::inQueue) return;
    const LeaseRef lease = claimOne();
    if (state == JobState::completed) (void)complete(lease);
    if (state == JobState::failed) (void)fail(lease);
    if (state == JobState::cancelled) (void)jobs().cancel({"ep", id});
    if (state == JobState::timedOut) pull(id, Trigger::timeOut);
    EXPECT_EQ(stateOf(id), state);
  }

  /// Calls the operation of `trigger` with the job's present attempt, the lease that an operation would accept most
  /// easily.
  void pull(const JobId& id, Trigger trigger) {
    const std::vector lease{LeaseRef{id, find(id)->attempt}};
    switch (trigger) {
      case Trigger::claim: (void)claim(9); return;
      case Trigger::complete: (void)complete(lease[0]); return;
      case Trigger::fail: (void)fail(lease[0]); return;
      case Trigger::cancel: (void)jobs().cancel({"ep", id}); return;
      case Trigger::retry: (void)requeue({"ep", id}, policy_); return;
      case Trigger::release: (void)testkit::release(leases(), lease); return;
      case Trigger::timeOut: clock_.advance(Millis(300'001)); return sweepAll();
      case Trigger::lose:
      case Trigger::loseLast: newLife(); return sweepAll();
    }
  }
};

TEST_P(StateSuite, EveryTriggerInEveryStateFollowsTheTable) {
  int number = 0;
  for (JobState from : kAllStates) {
    for (Trigger trigger : kAllTriggers) {
      const JobId id = "j" + std::to_string(number++);
      bringTo(id, from, trigger == Trigger::loseLast ? 1 : 9);
      const std::string before = describe(*find(id));
      pull(id, trigger);
      const auto to = next(from, trigger);
      const auto job = find(id);
      ASSERT_TRUE(job) << id;
      const std::string what = std::string(nameOf(from)) + ", trigger " + std::to_string(static_cast<int>(trigger));
      EXPECT_EQ(job->state, to.value_or(from)) << what;
      EXPECT_EQ(job->finishedAt.has_value(), terminal(job->state)) << what;
      if (!to) {
        EXPECT_EQ(describe(*job), before) << what;
      }
      while (jobs().remove("ep", 9) > 0) continue;
    }
  }
}

TEST_P(StorageSuite, CancelFollowsTheTableInEveryState) {
  for (JobState from : kAllStates) {
    const JobId id = "j" + std::to_string(static_cast<int>(from));
    bring(id, from);
    const auto result = storage_->jobs().cancel({"ep", id});
    const auto to = next(from, Trigger::cancel);
    const bool cancelled = to.has_value() || from == JobState::cancelled;
    EXPECT_EQ(std::holds_alternative<Cancelled>(result), cancelled) << nameOf(from);
    EXPECT_EQ(stateOf(id), to.value_or(from)) << nameOf(from);
    if (!cancelled) {
      EXPECT_EQ(std::get<WrongState>(result).state, from);
    }
    (void)storage_->jobs().purgeQueued("ep");
  }
}

TEST_P(StorageSuite, RetryFollowsTheTableInEveryState) {
  for (JobState from : kAllStates) {
    const JobId id = "j" + std::to_string(static_cast<int>(from));
    bring(id, from);
    const auto result = requeue({"ep", id}, policy_);
    const auto to = next(from, Trigger::retry);
    EXPECT_EQ(std::holds_alternative<Requeued>(result), to.has_value()) << nameOf(from);
    EXPECT_EQ(stateOf(id), to.value_or(from)) << nameOf(from);
    if (!to) {
      EXPECT_EQ(std::get<WrongState>(result).state, from);
    }
    (void)storage_->jobs().purgeQueued("ep");
  }
}

TEST_P(StorageSuite, OnlyARunningJobTakesReportsOfItsAttempt) {
  for (JobState from : kAllStates) {
    const JobId id = "j" + std::to_string(static_cast<int>(from));
    const LeaseRef lease = bring(id, from);
    const ReportResult expected = from == JobState::inProgress ? ReportResult::accepted : ReportResult::staleAttempt;
    EXPECT_EQ(storage_->leases().progress(lease, "1"), expected) << nameOf(from);
    EXPECT_EQ(append(lease, {Chunk{"1", "", false}}), expected) << nameOf(from);
    EXPECT_EQ(appendLog(lease, {LogLine{{}, LogLevel::information, "x"}}), expected);
    EXPECT_EQ(leaseState(lease) == LeaseState::held, from == JobState::inProgress);
    EXPECT_EQ(complete(lease, "\"late\""), expected) << nameOf(from);
    EXPECT_EQ(testkit::release(storage_->leases(), std::vector{lease}), 0U);
    EXPECT_EQ(stateOf(id), from == JobState::inProgress ? JobState::completed : from);
    (void)storage_->jobs().purgeQueued("ep");
  }
}

TEST_P(StorageSuite, AStaleAttemptHasNoEffect) {
  submit("a");
  const LeaseRef old = claimOne();
  EXPECT_EQ(testkit::release(storage_->leases(), std::vector{old}), 1U);
  const LeaseRef now = claimOne();
  EXPECT_GT(now.attempt, old.attempt);
  EXPECT_EQ(complete(old, "\"late\""), ReportResult::staleAttempt);
  EXPECT_EQ(storage_->leases().progress(old, "1"), ReportResult::staleAttempt);
  EXPECT_EQ(append(old, {Chunk{"1", "", false}}), ReportResult::staleAttempt);
  EXPECT_EQ(appendLog(old, {LogLine{}}), ReportResult::staleAttempt);
  EXPECT_EQ(testkit::release(storage_->leases(), std::vector{old}), 0U);
  EXPECT_EQ(leases().states(std::vector{old, now}), (std::vector{LeaseState::takenOver, LeaseState::held}));
  const auto job = find("a");
  EXPECT_EQ(job->state, JobState::inProgress);
  EXPECT_EQ(job->progress, "");
  EXPECT_TRUE(consume({"ep", "a"}, 100)->chunks.empty());
  EXPECT_TRUE(storage_->chunks().readLog({"ep", "a"})->lines.empty());
}

TEST_P(StorageSuite, AnotherEndpointsJobIsAbsentForEachOperation) {
  for (JobState state : kAllStates) {
    const JobId id = "j" + std::to_string(static_cast<int>(state));
    bring(id, state);
    const JobKey key{"other", id};
    const std::string before = describe(*find(id));
    EXPECT_FALSE(storage_->jobs().find(key));
    EXPECT_EQ(jobs().summaries(std::vector{key}).at(0), std::nullopt);
    EXPECT_TRUE(std::holds_alternative<NotFound>(storage_->jobs().cancel(key)));
    EXPECT_TRUE(std::holds_alternative<NotFound>(requeue(key, policy_)));
    EXPECT_FALSE(storage_->jobs().setTtl(key, Millis(5'000)));
    EXPECT_EQ(jobs().list({"other", std::nullopt}, {}).total, 0U);
    EXPECT_EQ(jobs().purgeQueued("other") + jobs().remove("other", 9), 0U);
    EXPECT_EQ(counts("other").inQueue + counts("other").inProgress, 0U);
    EXPECT_TRUE(claim(9, "other").empty());
    EXPECT_FALSE(consume(key, 100));
    EXPECT_FALSE(storage_->chunks().read(key, 0, 100));
    EXPECT_FALSE(storage_->chunks().readLog(key));
    EXPECT_EQ(describe(*find(id)), before);
    (void)storage_->jobs().purgeQueued("ep");
  }
}

TEST_P(StorageSuite, AnExpiredJobIsAbsentForEachOperationBeforeTheSweep) {
  for (JobState state : kAllStates) {
    const JobId id = "j" + std::to_string(static_cast<int>(state));
    const JobKey key{"ep", id};
    const LeaseRef lease = bring(id, state);
    (void)storage_->jobs().setTtl(key, Millis(1'000));
    clock_.advance(Millis(1'000));
    EXPECT_FALSE(storage_->jobs().find(key));
    EXPECT_EQ(jobs().summaries(std::vector{key}).at(0), std::nullopt);
    EXPECT_TRUE(std::holds_alternative<NotFound>(storage_->jobs().cancel(key)));
    EXPECT_TRUE(std::holds_alternative<NotFound>(requeue(key, policy_)));
    EXPECT_FALSE(storage_->jobs().setTtl(key, Millis(5'000)));
    EXPECT_EQ(storage_->jobs().list({"ep", std::nullopt}, {}).total, 0U);
    EXPECT_EQ(storage_->jobs().purgeQueued("ep"), 0U);
    EXPECT_TRUE(claim(1).empty());
    EXPECT_EQ(complete(lease), ReportResult::staleAttempt);
    EXPECT_EQ(storage_->leases().progress(lease, "1"), ReportResult::staleAttempt);
    EXPECT_EQ(testkit::release(storage_->leases(), std::vector{lease}), 0U);
    EXPECT_EQ(leaseState(lease), LeaseState::deleted);
    EXPECT_EQ(append(lease, {Chunk{"1", "", false}}), ReportResult::staleAttempt);
    EXPECT_EQ(appendLog(lease, {LogLine{}}), ReportResult::staleAttempt);
    EXPECT_FALSE(consume(key, 100));
    EXPECT_FALSE(storage_->chunks().read(key, 0, 100));
    EXPECT_FALSE(storage_->chunks().readLog(key));
    EXPECT_EQ(counts().inQueue + counts().inProgress, 0U);
    const SweepResult swept = sweep();
    EXPECT_EQ(swept.removed, 1U) << nameOf(state);
    EXPECT_EQ(swept.stopped.size(), state == JobState::inProgress ? 1U : 0U)
        << "the worker of the expired job must stop";
  }
}

TEST_P(StorageSuite, TheAttemptOnlyGrows) {
  JobSpec job = spec("a");
  job.maxAttempts = 9;
  submit(std::move(job));
  std::uint32_t last = 0;
  const auto grew = [&](const char* what) {
    const std::uint32_t attempt = find("a")->attempt;
    EXPECT_GT(attempt, last) << what;
    last = attempt;
  };
  LeaseRef lease = claimOne();
  grew("claim");
  (void)testkit::release(storage_->leases(), std::vector{lease});
  grew("release");
  lease = claimOne();
  grew("claim");
  newLife();
  (void)sweep();
  grew("loss");
  EXPECT_EQ(fail(claimOne()), ReportResult::accepted);
  grew("claim");
  (void)requeue({"ep", "a"}, policy_);
  grew("retry");
}

}  // namespace jobq::testkit

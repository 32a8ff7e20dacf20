// Conformance: the life of a job (setTtl in sdk/include/jobq/job_store.h; finish in sdk/include/jobq/lease_store.h).
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, AJobExpiresAtTheEarlierOfTtlAndRetention) {
  JobSpec job = spec("a");
  job.retention = Millis(60'000);
  submit(std::move(job));
  clock_.advance(Millis(1'000));
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  EXPECT_EQ(find("a")->expiresAt, clock_.now() + Millis(60'000));
  clock_.advance(Millis(59'999));
  EXPECT_TRUE(find("a"));
  clock_.advance(Millis(1));
  EXPECT_FALSE(find("a"));
  JobSpec brief = spec("b");
  brief.policy.ttl = Millis(10'000);
  submit(std::move(brief));
  const Instant submitted = clock_.now();
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  EXPECT_EQ(find("b")->expiresAt, submitted + Millis(10'000));
}

TEST_P(StorageSuite, SetTtlHoldsThroughCompletionWithinItsBounds) {
  submit("a");
  const Instant submitted = clock_.now();
  clock_.advance(Millis(5'000));
  EXPECT_EQ(storage_->jobs().setTtl({"ep", "a"}, Millis(0)), clock_.now() + kTtlFloor);
  EXPECT_EQ(storage_->jobs().setTtl({"ep", "a"}, Millis(999'999'999'999)), submitted + kTtlCeiling);
  EXPECT_EQ(storage_->jobs().setTtl({"ep", "a"}, Millis(20'000)), clock_.now() + Millis(20'000));
  const Instant pinned = clock_.now() + Millis(20'000);
  EXPECT_EQ(fail(claimOne()), ReportResult::accepted);
  EXPECT_EQ(find("a")->expiresAt, pinned);
  EXPECT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, policy_)));
  EXPECT_EQ(find("a")->expiresAt, pinned);
  EXPECT_FALSE(storage_->jobs().setTtl({"ep", "none"}, Millis(1)));
}

TEST_P(StorageSuite, ARetentionOfFailuresOutlivesTheTtl) {
  for (JobState state : {JobState::completed, JobState::failed, JobState::cancelled, JobState::timedOut}) {
    JobSpec job = spec("j" + std::to_string(static_cast<int>(state)));
    const JobId id = job.id;
    job.policy.ttl = Millis(100'000);
    job.policy.executionTimeout = Millis(1'000);
    job.retentionFailed = Millis(604'800'000);
    submit(std::move(job));
    const Instant submitted = clock_.now();
    const LeaseRef lease = claimOne();
    clock_.advance(Millis(1'000));
    if (state == JobState::completed) {
      EXPECT_EQ(complete(lease), ReportResult::accepted);
    }
    if (state == JobState::failed) {
      EXPECT_EQ(fail(lease), ReportResult::accepted);
    }
    if (state == JobState::cancelled) (void)jobs().cancel({"ep", id});
    if (state == JobState::timedOut) (void)leases().sweep(100);
    ASSERT_EQ(stateOf(id), state);
    const bool isFailure = state == JobState::failed || state == JobState::timedOut;
    EXPECT_EQ(find(id)->expiresAt, isFailure ? clock_.now() + Millis(604'800'000) : submitted + Millis(100'000))
        << nameOf(state);
  }
}

TEST_P(StorageSuite, ARetryOfAKeptFailureBeginsANewTtl) {
  JobSpec job = spec("a");
  job.policy.ttl = Millis(100'000);
  job.retentionFailed = Millis(604'800'000);
  submit(std::move(job));
  EXPECT_EQ(fail(claimOne()), ReportResult::accepted);
  clock_.advance(Millis(500'000));
  EXPECT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, policy_)));
  EXPECT_EQ(find("a")->expiresAt, clock_.now() + Millis(100'000));
  clock_.advance(Millis(1'000));
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  EXPECT_EQ(find("a")->expiresAt, clock_.now() + Millis(99'000)) << "the ttl ends before the retention";
}

TEST_P(StorageSuite, SetTtlAfterTheCeilingStaysWithinTheLifeOfAKeptFailure) {
  JobSpec job = spec("a");
  job.retentionFailed = kTtlCeiling * 2;
  submit(std::move(job));
  EXPECT_EQ(fail(claimOne()), ReportResult::accepted);
  clock_.advance(kTtlCeiling);
  const Instant begin = clock_.now();
  EXPECT_EQ(jobs().setTtl({"ep", "a"}, Millis(86'400'000)), begin + Millis(86'400'000));
  clock_.advance(Millis(1'000));
  EXPECT_EQ(jobs().setTtl({"ep", "a"}, kTtlCeiling), begin + Millis(86'400'000)) << "no longer than before";
  EXPECT_EQ(jobs().setTtl({"ep", "a"}, Millis(0)), clock_.now() + kTtlFloor);
}

TEST_P(StorageSuite, EveryEndIsKeptForTheRetentionAlike) {
  for (JobState state : {JobState::completed, JobState::failed, JobState::cancelled, JobState::timedOut}) {
    const JobId id = "j" + std::to_string(static_cast<int>(state));
    bring(id, state);
    EXPECT_EQ(find(id)->expiresAt, *find(id)->finishedAt + Millis(1'800'000)) << nameOf(state);
    EXPECT_EQ(find(id)->finishedAt, clock_.now()) << nameOf(state);
  }
}

TEST_P(StorageSuite, TheLastLossIsKeptForTheRetentionToo) {
  JobSpec job = spec("a");
  job.maxAttempts = 1;
  job.retention = Millis(60'000);
  submit(std::move(job));
  (void)claimOne();
  clock_.advance(Millis(1'001));
  newLife();
  (void)sweep();
  EXPECT_EQ(find("a")->expiresAt, clock_.now() + Millis(60'000));
}

TEST_P(StorageSuite, ARetryCountsTheTtlFromTheSubmissionAgain) {
  JobSpec job = spec("a");
  job.retention = Millis(60'000);
  job.policy.ttl = Millis(200'000);
  submit(std::move(job));
  const Instant submitted = clock_.now();
  clock_.advance(Millis(10'000));
  EXPECT_EQ(fail(claimOne()), ReportResult::accepted);
  EXPECT_EQ(find("a")->expiresAt, clock_.now() + Millis(60'000));
  ASSERT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, policy_)));
  EXPECT_EQ(find("a")->expiresAt, submitted + Millis(200'000));
  clock_.advance(Millis(180'000));
  EXPECT_EQ(fail(claimOne()), ReportResult::accepted);
  EXPECT_EQ(find("a")->expiresAt, submitted + Millis(200'000)) << "the ttl ends before the retention";
}

TEST_P(StorageSuite, SetTtlShortensOrLengthensInEveryState) {
  for (JobState state : kAllStates) {
    const JobId id = "j" + std::to_string(static_cast<int>(state));
    bring(id, state);
    const Instant longer = clock_.now() + Millis(90'000'000);
    EXPECT_EQ(jobs().setTtl({"ep", id}, Millis(90'000'000)), longer) << nameOf(state);
    EXPECT_EQ(find(id)->expiresAt, longer) << nameOf(state);
    EXPECT_EQ(stateOf(id), state);
    EXPECT_EQ(jobs().setTtl({"ep", id}, Millis(2'000)), clock_.now() + Millis(2'000)) << nameOf(state);
    clock_.advance(Millis(1'999));
    EXPECT_TRUE(find(id)) << nameOf(state);
    clock_.advance(Millis(1));
    EXPECT_FALSE(find(id)) << nameOf(state);
    sweepAll();
  }
}

TEST_P(StorageSuite, ASetTtlBoundsTheDeadlineOfALaterClaim) {
  submit("a");
  (void)jobs().setTtl({"ep", "a"}, Millis(3'000));
  const auto claimed = claim(1);
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].runsFor, Millis(3'000));
}

TEST_P(StorageSuite, ARunningJobExpiresAndTheWorkerIsNamed) {
  JobSpec job = spec("a");
  job.policy.ttl = Millis(10'000);
  job.webhook = "http://example.com/";
  submit(std::move(job));
  clock_.advance(Millis(9'000));
  const LeaseRef lease = claimOne();
  clock_.advance(Millis(1'000));
  EXPECT_FALSE(find("a"));
  EXPECT_EQ(complete(lease), ReportResult::staleAttempt);
  const SweepResult swept = sweep();
  EXPECT_EQ(swept.stopped, (std::vector{lease}));
  EXPECT_TRUE(swept.finished.empty()) << "an expired job is gone and not finished";
  EXPECT_EQ(swept.removed, 1U);
  EXPECT_EQ(counts().completed + counts().failed, 0U);
  EXPECT_TRUE(claimDue(Millis(1'000)).empty());
}

}  // namespace jobq::testkit

// Conformance: jobs whose time or whose worker has ended (sdk/include/jobq/lease_store.h, sweep).
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/log.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, AJobPastTheExecutionTimeoutIsTimedOut) {
  JobSpec job = spec("a");
  job.policy.executionTimeout = Millis(5'000);
  submit(std::move(job));
  clock_.advance(Millis(60'000));
  EXPECT_TRUE(sweep().finished.empty()) << "the timeout does not count in the queue";
  const LeaseRef lease = claimOne();
  clock_.advance(Millis(4'999));
  EXPECT_TRUE(sweep().finished.empty());
  clock_.advance(Millis(1));
  const SweepResult swept = sweep();
  EXPECT_EQ(swept.finished, (std::vector<JobKey>{{"ep", "a"}}));
  EXPECT_EQ(swept.stopped, (std::vector{lease}));
  EXPECT_EQ(stateOf("a"), JobState::timedOut);
  EXPECT_EQ(find("a")->error, overTimeError(Millis(5'000)));
  EXPECT_EQ(counts().failed, 1U);
  EXPECT_EQ(complete(lease), ReportResult::staleAttempt);
}

TEST_P(StorageSuite, OnlyJobsDeletedInTheQueueAreNamed) {
  submit("waits");
  submit("runs");
  submit("ended");
  (void)storage_->jobs().cancel({"ep", "ended"});
  const LeaseRef lease = claimOne();
  clock_.advance(Millis(86'400'000));
  const SweepResult swept = sweep();
  const JobId running = lease.job;
  EXPECT_EQ(swept.expired, (std::vector<JobKey>{{"ep", running == "waits" ? "runs" : "waits"}}));
  EXPECT_EQ(swept.stopped, (std::vector{lease}));
  EXPECT_TRUE(swept.finished.empty());
}

TEST_P(StorageSuite, AJobWithLostWorkersFailsAtMaxAttempts) {
  JobSpec job = spec("a");
  job.maxAttempts = 3;
  submit(std::move(job));
  submit("behind");
  const Instant queued = find("a")->queuedAt;
  for (int loss = 1; loss <= 3; ++loss) {
    const LeaseRef lease = claimOne();
    EXPECT_EQ(lease.job, "a") << "a lost job keeps the place in the queue";
    EXPECT_EQ(append(lease, {Chunk{"1", "", false}}), ReportResult::accepted);
    newLife();
    const SweepResult swept = sweep();
    EXPECT_EQ(swept.stopped, (std::vector{lease}));
    EXPECT_EQ(swept.finished.size(), loss == 3 ? 1U : 0U);
    const auto now = find("a");
    EXPECT_EQ(now->losses, static_cast<std::uint32_t>(loss));
    EXPECT_EQ(now->retries, static_cast<std::uint32_t>(loss));
    EXPECT_EQ(now->queuedAt, queued);
    EXPECT_EQ(now->state, loss == 3 ? JobState::failed : JobState::inQueue);
    if (loss < 3) {
      EXPECT_TRUE(consume({"ep", "a"}, 100)->chunks.empty());
    }
  }
  EXPECT_NE(find("a")->error.find("3"), std::string::npos) << "the error names the number of losses";
  EXPECT_EQ(counts().failed, 1U);
  EXPECT_EQ(counts().retried, 3U);
  (void)requeue({"ep", "a"}, policy_);
  EXPECT_EQ(find("a")->losses, 0U);
}

TEST_P(StorageSuite, ASweepIsBounded) {
  for (int i = 0; i < 5; ++i) {
    JobSpec job = spec("j" + std::to_string(i));
    job.policy.executionTimeout = Millis(5'000);
    submit(std::move(job));
  }
  (void)claim(5);
  clock_.advance(Millis(5'000));
  SweepResult swept = storage_->leases().sweep(3);
  EXPECT_EQ(swept.finished.size(), 3U);
  EXPECT_TRUE(swept.more);
  swept = storage_->leases().sweep(3);
  EXPECT_EQ(swept.finished.size(), 2U);
  EXPECT_FALSE(swept.more);
}

TEST_P(StorageSuite, AnEmptySweepHasNoEffect) {
  submit("a");
  (void)claimOne();
  const SweepResult swept = sweep();
  EXPECT_TRUE(swept.stopped.empty());
  EXPECT_TRUE(swept.finished.empty());
  EXPECT_TRUE(swept.requeuedAt.empty());
  EXPECT_EQ(swept.removed, 0U);
  EXPECT_FALSE(swept.more);
}

TEST_P(StorageSuite, ExpiryGoesBeforeTimeoutAndTimeoutBeforeLoss) {
  JobSpec gone = spec("gone");
  gone.policy.executionTimeout = Millis(5'000);
  gone.policy.ttl = Millis(10'000);
  gone.webhook = "http://example.com/";
  submit(std::move(gone));
  const LeaseRef expired = claimOne();
  JobSpec late = spec("late");
  late.policy.executionTimeout = Millis(5'000);
  submit(std::move(late));
  const LeaseRef timedOut = claimOne();
  clock_.advance(Millis(10'001));
  newLife();
  const SweepResult swept = sweep();
  EXPECT_EQ(swept.stopped, (std::vector{expired, timedOut}));
  EXPECT_EQ(swept.finished, (std::vector<JobKey>{{"ep", "late"}}));
  EXPECT_TRUE(swept.requeuedAt.empty());
  EXPECT_EQ(swept.removed, 1U);
  EXPECT_EQ(stateOf("late"), JobState::timedOut);
  EXPECT_EQ(find("late")->losses, 0U);
  EXPECT_TRUE(claimDue(Millis(1'000)).empty());
  EXPECT_EQ(counts().failed, 1U);
}

TEST_P(StorageSuite, EachTaskOfASweepIsBounded) {
  for (int i = 0; i < 3; ++i) {
    JobSpec brief = spec("x" + std::to_string(i), "expires");
    brief.policy.ttl = Millis(10'000);
    submit(std::move(brief));
    JobSpec late = spec("t" + std::to_string(i), "late");
    late.policy.executionTimeout = Millis(5'000);
    submit(std::move(late));
    submit(spec("l" + std::to_string(i), "lost"));
  }
  (void)claim(3, "late");
  (void)claim(3, "lost");
  clock_.advance(Millis(10'001));
  newLife();
  std::size_t removed = 0;
  std::set<JobId> finished;
  std::set<JobId> stopped;
  std::size_t requeues = 0;
  bool more = true;
  for (int round = 0; more && round < 20; ++round) {
    const SweepResult swept = leases().sweep(2);
    EXPECT_LE(swept.removed, 2U);
    EXPECT_LE(swept.finished.size(), 2U);
    EXPECT_LE(swept.stopped.size(), 6U);
    removed += swept.removed;
    requeues += swept.requeuedAt.size();
    for (const JobKey& key : swept.finished) EXPECT_TRUE(finished.insert(key.id).second) << key.id;
    for (const LeaseRef& lease : swept.stopped) EXPECT_TRUE(stopped.insert(lease.job).second) << lease.job;
    more = swept.more;
  }
  EXPECT_FALSE(more);
  EXPECT_EQ(removed, 3U);
  EXPECT_EQ(finished, (std::set<JobId>{"t0", "t1", "t2"}));
  EXPECT_EQ(stopped.size(), 6U);
  EXPECT_EQ(requeues, 2U) << "an endpoint once a sweep";
  EXPECT_EQ(counts("lost").inQueue, 3U);
  EXPECT_EQ(counts("lost").retried, 3U);
}

TEST_P(StorageSuite, AnEndpointIsNamedOnceForManyReturnedJobs) {
  for (int i = 0; i < 3; ++i) submit(spec("a" + std::to_string(i), "one"));
  submit(spec("b", "two"));
  (void)claim(9, "one");
  (void)claim(9, "two");
  newLife();
  const SweepResult swept = sweep();
  EXPECT_EQ(swept.requeuedAt.size(), 2U);
  EXPECT_EQ(std::set<EndpointId>(swept.requeuedAt.begin(), swept.requeuedAt.end()),
            (std::set<EndpointId>{"one", "two"}));
  EXPECT_EQ(swept.stopped.size(), 4U);
}

TEST_P(StorageSuite, ALossDiscardsTheReportsOfTheAttempt) {
  submit("a");
  const LeaseRef lease = claimOne();
  EXPECT_EQ(leases().progress(lease, "1"), ReportResult::accepted);
  EXPECT_EQ(append(lease, {Chunk{"1", "", false}, Chunk{"2", "", false}}), ReportResult::accepted);
  EXPECT_EQ(consume({"ep", "a"}, 1)->chunks.size(), 1U);
  EXPECT_EQ(appendLog(lease, {LogLine{{}, LogLevel::information, "kept"}}), ReportResult::accepted);
  newLife();
  (void)sweep();
  EXPECT_EQ(find("a")->progress, "");
  EXPECT_EQ(find("a")->error, "");
  EXPECT_FALSE(find("a")->finishedAt);
  EXPECT_TRUE(chunks().read({"ep", "a"}, 0, 100)->chunks.empty());
  EXPECT_EQ(chunks().readLog({"ep", "a"})->lines.size(), 1U);
  const LeaseRef again = claimOne();
  EXPECT_EQ(append(again, {Chunk{"3", "", false}}), ReportResult::accepted);
  EXPECT_EQ(taken("a").size(), 1U) << "the cursor starts again";
}

TEST_P(StorageSuite, OnlyLossesCountTowardsMaxAttempts) {
  JobSpec job = spec("a");
  job.maxAttempts = 2;
  submit(std::move(job));
  for (int i = 0; i < 5; ++i) (void)testkit::release(leases(), std::vector{claimOne()});
  (void)claimOne();
  newLife();
  (void)sweep();
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
  EXPECT_EQ(fail(claimOne()), ReportResult::accepted);
  ASSERT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, policy_)));
  (void)claimOne();
  newLife();
  (void)sweep();
  EXPECT_EQ(stateOf("a"), JobState::inQueue) << "a retry starts the count again";
  EXPECT_EQ(find("a")->losses, 1U);
  EXPECT_EQ(find("a")->retries, 3U) << "losses and retries of the whole life count";
}

TEST_P(StorageSuite, ATimeoutCountsFromTheClaimOfEachAttempt) {
  const LeaseRef lease = bring("a", JobState::inProgress);
  clock_.advance(Millis(4'000));
  (void)testkit::release(leases(), std::vector{lease});
  clock_.advance(Millis(60'000));
  (void)claimOne();
  clock_.advance(Millis(4'999));
  EXPECT_TRUE(sweep().finished.empty());
  clock_.advance(Millis(2));
  EXPECT_EQ(sweep().finished.size(), 1U);
}

}  // namespace jobq::testkit

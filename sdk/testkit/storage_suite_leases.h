// Conformance: LeaseStore (lease_store.h), and what survives a restart.
#pragma once

#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, AClaimServesManyEndpointsAtOnceAndNamesEachWorker) {
  submit(spec("a", "one"));
  submit(spec("b", "one"));
  submit(spec("c", "two"));
  const std::vector<ClaimWant> wants{{"one", {"w1"}}, {"two", {"w2", "w3"}}, {"none", {"w4"}}};
  const auto jobs = storage_->leases().claim(wants, {"node", Holder::Kind::process, {}});
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].lease, (LeaseRef{"a", 1}));
  EXPECT_EQ(jobs[0].worker, "w1");
  EXPECT_EQ(jobs[0].endpoint, "one");
  EXPECT_EQ(jobs[0].input, "{\"n\":1.0}");
  EXPECT_EQ(jobs[1].lease.job, "c");
  EXPECT_EQ(jobs[1].worker, "w2");
  EXPECT_EQ(find("a", "one")->workerId, "w1");
  EXPECT_EQ(find("a", "one")->startedAt, clock_.now());
}

TEST_P(StorageSuite, AClaimCarriesThePolicyAndItsDeadline) {
  JobSpec job = spec("a");
  job.policy.executionTimeout = Millis(7'000);
  job.policy.ttl = Millis(60'000);
  job.policy.priority = 3;
  submit(std::move(job));
  JobSpec brief = spec("b");
  brief.policy.ttl = Millis(10'000);
  brief.policy.priority = 4;
  submit(std::move(brief));
  const auto jobs = claim(2);
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].policy.executionTimeout, Millis(7'000));
  EXPECT_EQ(jobs[0].policy.ttl, Millis(60'000));
  EXPECT_EQ(jobs[0].policy.priority, 3);
  EXPECT_EQ(jobs[0].deadline, clock_.now() + Millis(7'000));
  EXPECT_EQ(jobs[1].deadline, clock_.now() + Millis(10'000)) << "the expiry comes first";
}

TEST_P(StorageSuite, FinishRecordsTheOutcome) {
  submit("a");
  clock_.advance(Millis(100));
  const LeaseRef a = claimOne();
  clock_.advance(Millis(50));
  EXPECT_EQ(storage_->leases().progress(a, "{\"p\":1}"), Fenced::accepted);
  EXPECT_EQ(find("a")->progress, "{\"p\":1}");
  EXPECT_EQ(complete(a, "[1.0]"), Fenced::accepted);
  const auto done = find("a");
  EXPECT_EQ(done->state, JobState::completed);
  EXPECT_EQ(done->output, "[1.0]");
  EXPECT_EQ(done->progress, "");
  EXPECT_EQ(done->workerId, "w0");
  EXPECT_EQ(*done->finishedAt - *done->startedAt, Millis(50));
  EXPECT_EQ(complete(a), Fenced::stale) << "once";
  submit("b");
  EXPECT_EQ(storage_->leases().finish(claimOne(), Failed{"bad luck", "{\"half\":1}"}), Fenced::accepted);
  EXPECT_EQ(stateOf("b"), JobState::failed);
  EXPECT_EQ(find("b")->error, "bad luck");
  EXPECT_EQ(find("b")->output, "{\"half\":1}");
}

TEST_P(StorageSuite, ReleaseKeepsThePlaceAndCountsNoLoss) {
  submit("first");
  submit("second");
  const Instant queued = find("first")->queuedAt;
  const LeaseRef lease = claimOne();
  clock_.advance(Millis(10));
  EXPECT_EQ(storage_->leases().progress(lease, "1"), Fenced::accepted);
  EXPECT_EQ(storage_->leases().release(std::vector{lease}), 1U);
  const auto job = find("first");
  EXPECT_EQ(job->state, JobState::inQueue);
  EXPECT_EQ(job->losses, 0U);
  EXPECT_EQ(job->retries, 0U);
  EXPECT_EQ(job->queuedAt, queued);
  EXPECT_EQ(job->progress, "");
  EXPECT_EQ(claimOne().job, "first");
}

TEST_P(StorageSuite, AJobThatRunsTooLongIsTimedOut) {
  JobSpec job = spec("a");
  job.policy.executionTimeout = Millis(5'000);
  submit(std::move(job));
  clock_.advance(Millis(60'000));
  EXPECT_TRUE(sweep().finished.empty()) << "the timeout does not count in line";
  const LeaseRef lease = claimOne();
  clock_.advance(Millis(4'999));
  EXPECT_TRUE(sweep().finished.empty());
  clock_.advance(Millis(1));
  const Swept swept = sweep();
  EXPECT_EQ(swept.finished, (std::vector<JobKey>{{"ep", "a"}}));
  EXPECT_EQ(swept.stopped, (std::vector{lease}));
  EXPECT_EQ(stateOf("a"), JobState::timedOut);
  EXPECT_NE(find("a")->error, "");
  EXPECT_EQ(counts().failed, 1U);
  EXPECT_EQ(complete(lease), Fenced::stale);
}

TEST_P(StorageSuite, ATimedLeaseEndsUnlessItIsRenewed) {
  submit("a");
  const LeaseRef lease = claimTimed(Millis(10'000));
  clock_.advance(Millis(9'000));
  EXPECT_EQ(storage_->leases().renew(std::vector{lease}, Millis(10'000))[0], LeaseState::held);
  clock_.advance(Millis(9'000));
  EXPECT_TRUE(sweep().stopped.empty());
  clock_.advance(Millis(1'000));
  const Swept swept = sweep();
  EXPECT_EQ(swept.stopped, (std::vector{lease}));
  EXPECT_EQ(swept.requeuedAt, (std::vector<EndpointId>{"ep"}));
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
  EXPECT_EQ(storage_->leases().renew(std::vector{lease}, Millis(10'000))[0], LeaseState::lost);
}

TEST_P(StorageSuite, AProcessLeaseNeverEndsByTimeWhileTheProcessLives) {
  JobSpec job = spec("a");
  job.policy.executionTimeout = Millis(600'000);
  submit(std::move(job));
  const LeaseRef lease = claimOne();
  clock_.advance(Millis(599'000));
  EXPECT_TRUE(sweep().stopped.empty());
  EXPECT_EQ(complete(lease), Fenced::accepted);
}

TEST_P(StorageSuite, RenewTellsCancelledFromLost) {
  submit("a");
  const LeaseRef lease = claimOne();
  (void)storage_->jobs().cancel({"ep", "a"});
  EXPECT_EQ(storage_->leases().renew(std::vector{lease, LeaseRef{"none", 1}}, Millis(1)),
            (std::vector{LeaseState::cancelled, LeaseState::lost}));
}

TEST_P(StorageSuite, AJobWhoseWorkersAreLostFailsAtMaxAttempts) {
  JobSpec job = spec("a");
  job.maxAttempts = 3;
  submit(std::move(job));
  submit("behind");
  const Instant queued = find("a")->queuedAt;
  for (int loss = 1; loss <= 3; ++loss) {
    const LeaseRef lease = claimTimed(Millis(1'000));
    EXPECT_EQ(lease.job, "a") << "it keeps its place";
    EXPECT_EQ(storage_->chunks().append(lease, {Chunk{"1", "", false}}), Fenced::accepted);
    clock_.advance(Millis(1'000));
    const Swept swept = sweep();
    EXPECT_EQ(swept.stopped, (std::vector{lease}));
    EXPECT_EQ(swept.finished.size(), loss == 3 ? 1U : 0U);
    const auto now = find("a");
    EXPECT_EQ(now->losses, static_cast<std::uint32_t>(loss));
    EXPECT_EQ(now->retries, static_cast<std::uint32_t>(loss));
    EXPECT_EQ(now->queuedAt, queued);
    EXPECT_EQ(now->state, loss == 3 ? JobState::failed : JobState::inQueue);
    if (loss < 3) {
      EXPECT_TRUE(storage_->chunks().take({"ep", "a"}, 100)->chunks.empty());
    }
  }
  EXPECT_NE(find("a")->error.find("3"), std::string::npos) << "it says how often";
  EXPECT_EQ(counts().failed, 1U);
  EXPECT_EQ(counts().retried, 3U);
  (void)storage_->jobs().requeue({"ep", "a"}, policy_);
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
  Swept swept = storage_->leases().sweep(3);
  EXPECT_EQ(swept.finished.size(), 3U);
  EXPECT_TRUE(swept.more);
  swept = storage_->leases().sweep(3);
  EXPECT_EQ(swept.finished.size(), 2U);
  EXPECT_FALSE(swept.more);
}

TEST_P(StorageSuite, CheckReturnsWhenAWriteIsPossible) { EXPECT_NO_THROW(storage_->check()); }

TEST_P(StorageSuite, WhatWasAcknowledgedSurvivesAReopen) {
  if (!GetParam().durable) GTEST_SKIP() << GetParam().name << " does not promise to keep anything";
  bring("done", JobState::completed);
  bring("failed", JobState::failed);
  submit("first");
  submit("second");
  (void)storage_->jobs().insert(spec("once"), policy_, Idempotency{"k", "h"});
  ASSERT_TRUE(std::holds_alternative<Stored>(storage_->records().create({"key", "id", "name", "{}", 0, {}})));
  reopen();
  EXPECT_EQ(find("done")->output, "{\"ok\":true}");
  EXPECT_EQ(find("failed")->error, "no");
  EXPECT_EQ(counts().completed, 1U);
  EXPECT_EQ(counts().failed, 1U);
  EXPECT_EQ(counts().inQueue, 3U);
  EXPECT_TRUE(storage_->records().find("key", "id"));
  EXPECT_TRUE(std::holds_alternative<Existing>(storage_->jobs().insert(spec("x"), policy_, Idempotency{"k", "h"})));
  EXPECT_EQ(claimOne().job, "first");
  submit("third");
  EXPECT_EQ(claimOne().job, "second");
  EXPECT_EQ(claimOne().job, "once");
  EXPECT_EQ(claimOne().job, "third") << "arrivals go on where they were";
}

TEST_P(StorageSuite, JobsOfADeadProcessAreCountedAndGoBackInLine) {
  if (!GetParam().durable) GTEST_SKIP() << GetParam().name << " does not promise to keep anything";
  JobSpec job = spec("a");
  job.maxAttempts = 2;
  submit(std::move(job));
  submit("behind");
  LeaseRef lease = claimOne();
  reopen();
  Swept swept = sweep();
  EXPECT_EQ(swept.requeuedAt, (std::vector<EndpointId>{"ep"}));
  EXPECT_EQ(find("a")->losses, 1U);
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
  EXPECT_EQ(complete(lease), Fenced::stale);
  lease = claimOne();
  EXPECT_EQ(lease.job, "a") << "with its old place";
  reopen();
  swept = sweep();
  EXPECT_EQ(swept.finished, (std::vector<JobKey>{{"ep", "a"}}));
  EXPECT_EQ(stateOf("a"), JobState::failed);
  EXPECT_EQ(counts().inProgress, 0U);
  EXPECT_EQ(counts().inQueue, 1U);
}

}  // namespace jobq::testkit

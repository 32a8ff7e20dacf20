// Conformance: the operations of a worker (sdk/include/jobq/lease_store.h).
#pragma once

#include <utility>
#include <vector>

#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, AClaimServesManyEndpointsAtOnceAndNamesEachWorker) {
  submit(spec("a", "one"));
  submit(spec("b", "one"));
  submit(spec("c", "two"));
  const std::vector<ClaimWant> wants{{"one", {"w1"}}, {"two", {"w2", "w3"}}, {"none", {"w4"}}};
  const auto jobs = storage_->leases().claim(wants, {"node", Holder::Kind::process, {}}, nextCall());
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
  EXPECT_EQ(storage_->leases().progress(a, "{\"p\":1}"), ReportResult::accepted);
  EXPECT_EQ(find("a")->progress, "{\"p\":1}");
  EXPECT_EQ(complete(a, "[1.0]"), ReportResult::accepted);
  const auto done = find("a");
  EXPECT_EQ(done->state, JobState::completed);
  EXPECT_EQ(done->output, "[1.0]");
  EXPECT_EQ(done->progress, "");
  EXPECT_EQ(done->workerId, "w0");
  EXPECT_EQ(*done->finishedAt - *done->startedAt, Millis(50));
  EXPECT_EQ(complete(a), ReportResult::staleAttempt) << "once";
  submit("b");
  EXPECT_EQ(storage_->leases().finish(claimOne(), Failed{"bad luck", "{\"half\":1}"}), ReportResult::accepted);
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
  EXPECT_EQ(storage_->leases().progress(lease, "1"), ReportResult::accepted);
  EXPECT_EQ(storage_->leases().release(std::vector{lease}), 1U);
  const auto job = find("first");
  EXPECT_EQ(job->state, JobState::inQueue);
  EXPECT_EQ(job->losses, 0U);
  EXPECT_EQ(job->retries, 0U);
  EXPECT_EQ(job->queuedAt, queued);
  EXPECT_EQ(job->progress, "");
  EXPECT_EQ(claimOne().job, "first");
}

TEST_P(StorageSuite, RenewTellsCancelledFromLost) {
  submit("a");
  const LeaseRef lease = claimOne();
  (void)storage_->jobs().cancel({"ep", "a"});
  EXPECT_EQ(storage_->leases().renew(std::vector{lease, LeaseRef{"none", 1}}, Millis(1)),
            (std::vector{LeaseState::cancelled, LeaseState::lost}));
}

TEST_P(StorageSuite, CheckReturnsWhenAWriteIsPossible) { EXPECT_NO_THROW(storage_->check()); }

TEST_P(StorageSuite, AClaimWithoutFreeWorkersOrWithoutJobsTakesNothing) {
  EXPECT_TRUE(claim(3).empty()) << "an endpoint that was never seen";
  submit("a");
  EXPECT_TRUE(leases().claim({}, {"node", Holder::Kind::process, {}}, nextCall()).empty());
  EXPECT_TRUE(claim(0).empty());
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
  EXPECT_EQ(find("a")->attempt, 0U);
  EXPECT_EQ(claim(5).size(), 1U);
  EXPECT_TRUE(claim(5).empty());
}

TEST_P(StorageSuite, ALowPriorityJobRunsWhenNoNormalJobWaits) {
  JobSpec low = spec("low");
  low.policy.lowPriority = true;
  submit(std::move(low));
  submit("a");
  submit("b");
  EXPECT_EQ(claimOne().job, "a");
  EXPECT_EQ(claimOne().job, "b");
  EXPECT_EQ(claimOne().job, "low");
  EXPECT_TRUE(find("low")->lowPriority);
}

TEST_P(StorageSuite, AClaimSkipsWhatHasExpired) {
  JobSpec brief = spec("brief");
  brief.policy.ttl = Millis(10'000);
  submit(std::move(brief));
  submit("a");
  clock_.advance(Millis(10'000));
  const auto claimed = claim(9);
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].lease.job, "a");
}

TEST_P(StorageSuite, AReportIsTakenUntilASweepHasEndedTheAttempt) {
  const LeaseRef late = bring("late", JobState::inProgress);
  clock_.advance(Millis(5'001));
  EXPECT_EQ(leases().progress(late, "1"), ReportResult::accepted) << "it is still IN_PROGRESS under this attempt";
  EXPECT_EQ(complete(late), ReportResult::accepted);
  EXPECT_EQ(stateOf("late"), JobState::completed);
  submit("lost");
  const LeaseRef lost = claimTimed(Millis(1'000));
  clock_.advance(Millis(1'001));
  EXPECT_EQ(complete(lost), ReportResult::accepted);
  const SweepResult swept = sweep();
  EXPECT_TRUE(swept.stopped.empty());
  EXPECT_TRUE(swept.finished.empty());
  EXPECT_EQ(counts().completed, 2U);
  EXPECT_EQ(counts().failed + counts().retried, 0U);
}

TEST_P(StorageSuite, RenewAnswersForEachInOrderAndCountsFromNow) {
  submit("a");
  submit("b");
  const LeaseRef a = claimTimed(Millis(1'000));
  const LeaseRef b = claimTimed(Millis(60'000));
  EXPECT_EQ(complete(b), ReportResult::accepted);
  clock_.advance(Millis(900));
  const std::vector<LeaseRef> asked{b, a, {"a", a.attempt + 1}, {"none", 1}, a};
  EXPECT_EQ(leases().renew(asked, Millis(5'000)),
            (std::vector{LeaseState::lost, LeaseState::held, LeaseState::lost, LeaseState::lost, LeaseState::held}));
  EXPECT_TRUE(leases().renew({}, Millis(1)).empty());
  clock_.advance(Millis(4'999));
  EXPECT_TRUE(sweep().stopped.empty());
  clock_.advance(Millis(2));
  EXPECT_EQ(sweep().stopped, (std::vector{a}));
}

TEST_P(StorageSuite, ARenewedLeaseDoesNotProlongTheExecutionTimeout) {
  JobSpec job = spec("a");
  job.policy.executionTimeout = Millis(5'000);
  submit(std::move(job));
  const LeaseRef lease = claimTimed(Millis(3'000));
  clock_.advance(Millis(2'500));
  EXPECT_EQ(leases().renew(std::vector{lease}, Millis(600'000))[0], LeaseState::held);
  clock_.advance(Millis(2'501));
  (void)sweep();
  EXPECT_EQ(stateOf("a"), JobState::timedOut);
  EXPECT_EQ(leases().renew(std::vector{lease}, Millis(600'000))[0], LeaseState::lost);
}

TEST_P(StorageSuite, ProgressIsTheLastReportOfThisAttempt) {
  submit("a");
  LeaseRef lease = claimOne();
  EXPECT_EQ(leases().progress(lease, "1"), ReportResult::accepted);
  EXPECT_EQ(leases().progress(lease, "[2]"), ReportResult::accepted);
  EXPECT_EQ(find("a")->progress, "[2]");
  (void)leases().release(std::vector{lease});
  EXPECT_EQ(find("a")->progress, "");
  lease = claimOne();
  EXPECT_EQ(find("a")->progress, "");
}

TEST_P(StorageSuite, ReleaseSkipsTheStaleAndTheRepeated) {
  submit("a");
  submit("b");
  submit("c");
  const auto claimed = claim(3);
  ASSERT_EQ(claimed.size(), 3U);
  EXPECT_EQ(complete(claimed[1].lease), ReportResult::accepted);
  const std::vector<LeaseRef> refs{claimed[2].lease, claimed[1].lease, {"none", 1}, claimed[0].lease, claimed[0].lease};
  EXPECT_EQ(leases().release(refs), 2U);
  EXPECT_EQ(leases().release({}), 0U);
  EXPECT_EQ(stateOf("b"), JobState::completed);
  EXPECT_EQ(counts().inQueue, 2U);
  EXPECT_EQ(claimOne().job, "a");
  EXPECT_EQ(claimOne().job, "c");
}

TEST_P(StorageSuite, TheStartIsOfTheLastAttempt) {
  submit("a");
  const LeaseRef lease = claimOne();
  const Instant first = clock_.now();
  clock_.advance(Millis(100));
  (void)leases().release(std::vector{lease});
  EXPECT_EQ(find("a")->startedAt, first) << "the claim of the last attempt";
  EXPECT_EQ(find("a")->workerId, "w0");
  clock_.advance(Millis(100));
  const auto again = claim(1);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].startedAt, clock_.now());
  EXPECT_EQ(again[0].submittedAt, first);
  EXPECT_EQ(again[0].deadline, clock_.now() + Millis(600'000)) << "each attempt has its own time";
  EXPECT_EQ(find("a")->startedAt, clock_.now());
}

}  // namespace jobq::testkit

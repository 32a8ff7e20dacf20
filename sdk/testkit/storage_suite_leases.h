// Conformance: the operations of a worker (sdk/include/jobq/lease_store.h).
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, AClaimServesManyEndpointsAtOnceAndNamesEachWorker) {
  submit(spec("a", "one"));
  submit(spec("b", "one"));
  submit(spec("c", "two"));
  const std::vector<ClaimWant> wants{{"one", {"w1"}}, {"two", {"w2", "w3"}}, {"none", {"w4"}}};
  const auto jobs = storage_->leases().claim(wants, holder_, nextCall()).jobs;
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

TEST_P(StorageSuite, AClaimCarriesThePolicyAndItsTime) {
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
  EXPECT_EQ(jobs[0].runsFor, Millis(7'000));
  EXPECT_EQ(jobs[1].runsFor, Millis(10'000)) << "the job expires before the timeout";
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
  EXPECT_EQ(testkit::release(storage_->leases(), std::vector{lease}), 1U);
  const auto job = find("first");
  EXPECT_EQ(job->state, JobState::inQueue);
  EXPECT_EQ(job->losses, 0U);
  EXPECT_EQ(job->retries, 0U);
  EXPECT_EQ(job->queuedAt, queued);
  EXPECT_EQ(job->progress, "");
  EXPECT_EQ(claimOne().job, "first");
}

TEST_P(StorageSuite, TheStateOfALeaseTellsWhyTheAttemptHasEnded) {
  const LeaseRef held = bring("held", JobState::inProgress);
  const LeaseRef done = bring("done", JobState::completed);
  const LeaseRef failed = bring("failed", JobState::failed);
  const LeaseRef stopped = bring("stopped", JobState::inProgress);
  (void)jobs().cancel({"ep", "stopped"});
  const LeaseRef returned = bring("returned", JobState::inProgress);
  EXPECT_EQ(testkit::release(leases(), std::vector{returned}), 1U);
  const LeaseRef again = claimOne();
  EXPECT_EQ(again.job, "returned");
  EXPECT_EQ(complete(held), ReportResult::accepted);  // the timeout below would end the job too
  const LeaseRef late = bring("late", JobState::timedOut);
  EXPECT_EQ(leases().states(std::vector{late, {"none", 1}, returned, stopped, failed, done, held}),
            (std::vector{LeaseState::timedOut, LeaseState::deleted, LeaseState::takenOver, LeaseState::cancelled,
                         LeaseState::takenOver, LeaseState::takenOver, LeaseState::takenOver}));
  EXPECT_TRUE(leases().states({}).empty());
}

TEST_P(StorageSuite, ALeaseIsHeldUntilASweepHasEndedTheAttempt) {
  const LeaseRef lease = bring("a", JobState::inProgress);
  clock_.advance(Millis(5'001));
  EXPECT_EQ(leaseState(lease), LeaseState::held);
  (void)sweep();
  EXPECT_EQ(leaseState(lease), LeaseState::timedOut);
}

TEST_P(StorageSuite, TheEndpointsWithQueuedJobsAreNamed) {
  EXPECT_TRUE(leases().queuedEndpoints().empty());
  submit(spec("a", "one"));
  submit(spec("b", "two"));
  submit(spec("c", "two"));
  JobSpec low = spec("d", "three");
  low.policy.lowPriority = true;
  submit(std::move(low));
  const auto queued = [this] {
    std::multiset<std::pair<EndpointId, bool>> endpoints;
    for (const QueuedEndpoint& each : leases().queuedEndpoints()) endpoints.emplace(each.endpoint, each.hasNormal);
    return endpoints;
  };
  EXPECT_EQ(queued(), (std::multiset<std::pair<EndpointId, bool>>{{"one", true}, {"three", false}, {"two", true}}));
  const LeaseRef lease = claimOne("one");
  (void)claimOne("two");
  EXPECT_EQ(queued(), (std::multiset<std::pair<EndpointId, bool>>{{"three", false}, {"two", true}}));
  EXPECT_EQ(testkit::release(leases(), std::vector{lease}), 1U);
  EXPECT_EQ(jobs().purgeQueued("two"), 1U);
  EXPECT_EQ(queued(), (std::multiset<std::pair<EndpointId, bool>>{{"one", true}, {"three", false}}));
}

TEST_P(StorageSuite, CheckReturnsWhenAWriteIsPossible) { EXPECT_NO_THROW(storage_->check()); }

TEST_P(StorageSuite, AClaimWithoutFreeWorkersOrWithoutJobsIsEmpty) {
  EXPECT_TRUE(claim(3).empty()) << "the storage has never seen the endpoint";
  submit("a");
  EXPECT_TRUE(leases().claim({}, holder_, nextCall()).jobs.empty());
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

TEST_P(StorageSuite, AClaimSkipsExpiredJobs) {
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
  EXPECT_EQ(leases().progress(late, "1"), ReportResult::accepted) << "the job is still IN_PROGRESS under the attempt";
  EXPECT_EQ(complete(late), ReportResult::accepted);
  EXPECT_EQ(stateOf("late"), JobState::completed);
  submit("lost");
  const LeaseRef lost = claimOne();
  newLife();
  EXPECT_EQ(complete(lost), ReportResult::accepted) << "no sweep has taken the job back";
  const SweepResult swept = sweep();
  EXPECT_TRUE(swept.stopped.empty());
  EXPECT_TRUE(swept.finished.empty());
  EXPECT_EQ(counts().completed, 2U);
  EXPECT_EQ(counts().failed + counts().retried, 0U);
}

TEST_P(StorageSuite, ProgressIsTheLastReportOfTheCurrentAttempt) {
  submit("a");
  LeaseRef lease = claimOne();
  EXPECT_EQ(leases().progress(lease, "1"), ReportResult::accepted);
  EXPECT_EQ(leases().progress(lease, "[2]"), ReportResult::accepted);
  EXPECT_EQ(find("a")->progress, "[2]");
  (void)testkit::release(leases(), std::vector{lease});
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
  EXPECT_EQ(testkit::release(leases(), refs), 2U);
  EXPECT_EQ(testkit::release(leases(), {}), 0U);
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
  (void)testkit::release(leases(), std::vector{lease});
  EXPECT_EQ(find("a")->startedAt, first) << "the claim of the last attempt";
  EXPECT_EQ(find("a")->workerId, "w0");
  clock_.advance(Millis(100));
  const auto again = claim(1);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].startedAt, clock_.now());
  EXPECT_EQ(again[0].submittedAt, first);
  EXPECT_EQ(again[0].runsFor, Millis(600'000)) << "each attempt has the full execution timeout";
  EXPECT_EQ(find("a")->startedAt, clock_.now());
}

}  // namespace jobq::testkit

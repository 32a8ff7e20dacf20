// Conformance: the report of a worker that takes its next job (LeaseStore::finish with a claim,
// sdk/include/jobq/lease_store.h). A storage without this step has to refuse each call and to change nothing.
#pragma once

#include <optional>
#include <vector>

#include "jobq/error.h"
#include "jobq/holder.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

class FinishAndClaimSuite : public StorageSuite {
 protected:
  /// Returns no value for a storage without the step, and then checks that the attempt goes on.
  std::optional<FinishResult> finishAndClaim(const LeaseRef& lease, const Outcome& outcome, const Holder& holder) {
    const EndedAttempt end{lease, outcome};
    const FusedClaim next{{"ep", {"w0"}}, holder, nextCall()};
    if (storage_->capabilities().has(Capability::finishAndClaim)) {
      return leases().finish({&end, 1}, Durability::synced, next);
    }
    const LeaseState before = leaseState(lease);
    EXPECT_THROW((void)leases().finish({&end, 1}, Durability::synced, next), StorageError);
    EXPECT_EQ(leaseState(lease), before);
    return std::nullopt;
  }
  std::optional<FinishResult> finishAndClaim(const LeaseRef& lease, const Outcome& outcome) {
    return finishAndClaim(lease, outcome, holder_);
  }
};

TEST_P(FinishAndClaimSuite, AWorkerReportsAndGetsTheNextJob) {
  submit("a");
  submit("b");
  submit("c");
  const LeaseRef a = claimOne();
  clock_.advance(Millis(50));
  const auto done = finishAndClaim(a, Completed{"[1.0]"});
  if (!done) return;
  EXPECT_EQ(done->reports.at(0), ReportResult::accepted);
  ASSERT_EQ(done->claimed.size(), 1U);
  EXPECT_EQ(done->claimed[0].lease, (LeaseRef{"b", 1}));
  EXPECT_EQ(done->claimed[0].worker, "w0");
  EXPECT_EQ(done->claimed[0].input, "{\"n\":1.0}");
  EXPECT_EQ(find("a")->output, "[1.0]");
  EXPECT_EQ(*find("a")->finishedAt, clock_.now());
  EXPECT_EQ(*find("b")->startedAt, clock_.now());
  EXPECT_EQ(stateOf("c"), JobState::inQueue);
  const EndpointCounts counts = storage_->jobs().counts("ep");
  EXPECT_EQ(counts.completed, 1U);
  EXPECT_EQ(counts.inProgress, 1U);
  EXPECT_EQ(counts.inQueue, 1U);
}

TEST_P(FinishAndClaimSuite, WithoutAQueueOnlyTheOutcomeIsStored) {
  submit("a");
  const auto done = finishAndClaim(claimOne(), Failed{"bad luck", "1"});
  if (!done) return;
  EXPECT_EQ(done->reports.at(0), ReportResult::accepted);
  EXPECT_TRUE(done->claimed.empty());
  EXPECT_EQ(stateOf("a"), JobState::failed);
  EXPECT_EQ(find("a")->error, "bad luck");
}

TEST_P(FinishAndClaimSuite, AStaleReportHasNoEffectAndClaims) {
  submit("a");
  const LeaseRef a = claimOne();
  ASSERT_EQ(testkit::release(storage_->leases(), std::vector{a}), 1U);
  const auto done = finishAndClaim(a, Completed{"1"});
  if (!done) return;
  EXPECT_EQ(done->reports.at(0), ReportResult::staleAttempt);
  ASSERT_EQ(done->claimed.size(), 1U);
  EXPECT_EQ(done->claimed[0].lease, (LeaseRef{"a", 3}));
  EXPECT_EQ(find("a")->output, "");
}

TEST_P(FinishAndClaimSuite, ARepeatedReportIsAccepted) {
  submit("a");
  submit("b");
  const LeaseRef a = claimOne();
  if (!finishAndClaim(a, Completed{"1"})) return;
  EXPECT_EQ(complete(a, "1"), ReportResult::accepted);
  EXPECT_EQ(complete(a, "2"), ReportResult::staleAttempt);
}

TEST_P(FinishAndClaimSuite, AnEndedLifeClaimsNoJob) {
  submit("a");
  submit("b");
  const LeaseRef a = claimOne();
  const Holder former = holder_;
  newLife();
  const auto done = finishAndClaim(a, Completed{"1"}, former);
  if (!done) return;
  EXPECT_EQ(done->reports.at(0), ReportResult::accepted) << "the job is not taken back yet";
  EXPECT_TRUE(done->claimed.empty());
  EXPECT_EQ(stateOf("b"), JobState::inQueue);
}

TEST_P(FinishAndClaimSuite, AnOwedWebhookIsWritten) {
  JobSpec job = spec("a");
  job.webhook = "http://h/done";
  submit(job);
  submit("b");
  if (!finishAndClaim(claimOne(), Completed{"1"})) return;
  EXPECT_EQ(storage_->outbox().owed("ep").count, 1U);
}

}  // namespace jobq::testkit

// Conformance: the report of a worker whose job's end nobody is told of now (Durability::unsynced in
// sdk/include/jobq/lease_store.h). A storage without this step has to refuse each
// call and to change nothing.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "jobq/error.h"
#include "jobq/holder.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

class FinishUnsyncedSuite : public StorageSuite {
 protected:
  void SetUp() override {
    StorageSuite::SetUp();
    submit("a");
    submit("b");
    first_ = claimOne();
  }

  /// Returns no value for a storage without the step, and then checks that the attempt goes on.
  std::optional<FinishResult> finish(const Outcome& outcome, const ClaimWant& want = {"ep", {"w0"}}) {
    const EndedAttempt end{first_, outcome};
    std::optional<FusedClaim> next;
    if (!want.workers.empty()) next = {want, holder_, nextCall()};
    if (storage_->capabilities().has(Capability::finishUnsynced)) {
      return leases().finish({&end, 1}, Durability::unsynced, next);
    }
    const LeaseState before = leaseState(first_);
    EXPECT_THROW((void)leases().finish({&end, 1}, Durability::unsynced, next), StorageError);
    EXPECT_EQ(leaseState(first_), before);
    return std::nullopt;
  }

  LeaseRef first_;  // the attempt of "a"
};

TEST_P(FinishUnsyncedSuite, TheWorkerGetsItsNextJob) {
  clock_.advance(Millis(50));
  const auto done = finish(Completed{"[1.0]"});
  if (!done) return;
  EXPECT_EQ(done->reports.at(0), ReportResult::accepted);
  ASSERT_EQ(done->claimed.size(), 1U);
  EXPECT_EQ(done->claimed[0].lease, (LeaseRef{"b", 1}));
  EXPECT_EQ(done->claimed[0].input, "{\"n\":1.0}");
  EXPECT_EQ(counts().completed, 1U);
  EXPECT_EQ(counts().inProgress, 1U);
  EXPECT_EQ(find("a")->output, "[1.0]");
  EXPECT_EQ(*find("a")->finishedAt, clock_.now());
}

TEST_P(FinishUnsyncedSuite, AWantWithoutWorkersClaimsNoJob) {
  const auto done = finish(Failed{"bad luck", "1"}, {"ep", {}});
  if (!done) return;
  EXPECT_EQ(done->reports.at(0), ReportResult::accepted);
  EXPECT_TRUE(done->claimed.empty());
  EXPECT_EQ(find("a")->error, "bad luck");
  EXPECT_EQ(stateOf("b"), JobState::inQueue);
}

TEST_P(FinishUnsyncedSuite, EachReadShowsTheEnd) {
  EXPECT_EQ(append(first_, {Chunk{"7", "", false}}), ReportResult::accepted);
  if (!finish(Completed{"1"})) return;
  EXPECT_EQ(chunks().read({"ep", "a"}, 0, 100)->state, JobState::completed);
  EXPECT_EQ(consume({"ep", "a"}, 100)->state, JobState::completed);
  EXPECT_EQ(consume({"ep", "a"}, 100)->state, JobState::completed) << "an empty page has the state, too";
  EXPECT_EQ(jobs().list({"ep", JobState::completed}, {}).total, 1U);
  EXPECT_EQ(stateOf("a"), JobState::completed);
}

TEST_P(FinishUnsyncedSuite, AStaleReportHasNoEffectAndClaims) {
  ASSERT_TRUE(std::holds_alternative<Cancelled>(jobs().cancel({"ep", "a"})));
  const auto done = finish(Completed{"1"});
  if (!done) return;
  EXPECT_EQ(done->reports.at(0), ReportResult::staleAttempt);
  EXPECT_EQ(done->claimed.size(), 1U);
  EXPECT_EQ(stateOf("a"), JobState::cancelled);
}

TEST_P(FinishUnsyncedSuite, ARepeatedReportIsAccepted) {
  if (!finish(Completed{"1"})) return;
  EXPECT_EQ(finish(Completed{"1"}, {"ep", {}})->reports.at(0), ReportResult::accepted);
  EXPECT_EQ(complete(first_, "1"), ReportResult::accepted);
  EXPECT_EQ(complete(first_, "2"), ReportResult::staleAttempt);
}

TEST_P(FinishUnsyncedSuite, AnEndedLifeClaimsNoJob) {
  const Holder former = holder_;
  newLife();
  holder_ = former;
  const auto done = finish(Completed{"1"});
  if (!done) return;
  EXPECT_EQ(done->reports.at(0), ReportResult::accepted) << "the job is not taken back yet";
  EXPECT_TRUE(done->claimed.empty());
}

TEST_P(FinishUnsyncedSuite, AnOwedWebhookIsHandedOut) {
  JobSpec job = spec("hooked", "other");
  job.webhook = "http://h/done";
  submit(std::move(job));
  first_ = claimOne("other");
  if (!finish(Completed{"1"}, {"other", {}})) return;
  EXPECT_EQ(claimDue(Millis(60'000)).size(), 1U);
}

TEST_P(FinishUnsyncedSuite, TheEndOutlivesTheProcess) {
  if (!GetParam().durable) return;
  inAProcessThatDies([&] {
    sweepAll();
    submit("c");
    for (const ClaimedJob& job : claim(3)) {
      if (job.lease.job == "c") first_ = job.lease;
    }
    if (!finish(Completed{"7"}, {"ep", {}})) (void)complete(first_, "7");
  });
  EXPECT_EQ(find("c")->output, "7");
}

}  // namespace jobq::testkit

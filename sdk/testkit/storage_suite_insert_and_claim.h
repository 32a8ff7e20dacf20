// Conformance: the insert of a job for idle workers (Storage::insertAndClaim in sdk/include/jobq/storage.h). A storage
// without this step has to refuse each call and to change nothing.
#pragma once

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "jobq/holder.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

class InsertAndClaimSuite : public StorageSuite {
 protected:
  /// Returns no value for a storage without the step, and then checks that nothing has changed.
  std::optional<InsertedAndClaimed> offer(JobSpec job, std::vector<WorkerId> workers,
                                          const std::optional<Idempotency>& idempotency = std::nullopt) {
    const JobKey key{job.endpoint, job.id};
    return offerAs({{key.endpoint, std::move(workers)}, holder_, nextCall()}, std::move(job), idempotency);
  }
  std::optional<InsertedAndClaimed> offerAs(const FusedClaim& claim, JobSpec job,
                                            const std::optional<Idempotency>& idempotency = std::nullopt) {
    if (storage_->capabilities().has(Capability::insertAndClaim)) {
      return storage_->insertAndClaim(std::move(job), fifo_, idempotency, claim);
    }
    const JobKey key{job.endpoint, job.id};
    const bool wasThere = find(key.id, key.endpoint).has_value();
    EXPECT_THROW((void)storage_->insertAndClaim(std::move(job), fifo_, idempotency, claim), StorageError);
    EXPECT_EQ(find(key.id, key.endpoint).has_value(), wasThere);
    return std::nullopt;
  }
  const RankByPriority fifo_{};
};

TEST_P(InsertAndClaimSuite, AJobWithoutAQueueRunsAtOnce) {
  JobSpec job = spec("a");
  job.policy.executionTimeout = Millis(7'000);
  job.policy.priority = 3;
  job.webhook = "http://h/done";
  job.s3Config = "sealed";
  clock_.advance(Millis(100));
  const auto done = offer(job, {"w1", "w2"});
  if (!done) return;
  EXPECT_TRUE(std::holds_alternative<Inserted>(done->inserted));
  ASSERT_EQ(done->claimed.size(), 1U);
  const ClaimedJob& claimed = done->claimed[0];
  EXPECT_EQ(claimed.lease, (LeaseRef{"a", 1}));
  EXPECT_EQ(claimed.endpoint, "ep");
  EXPECT_EQ(claimed.worker, "w1");
  EXPECT_EQ(claimed.input, job.input);
  EXPECT_EQ(claimed.webhook, job.webhook);
  EXPECT_EQ(claimed.s3Config, job.s3Config);
  EXPECT_EQ(claimed.policy.priority, 3);
  EXPECT_EQ(claimed.submittedAt, clock_.now());
  EXPECT_EQ(claimed.startedAt, clock_.now());
  EXPECT_EQ(claimed.runsFor, Millis(7'000));
  EXPECT_EQ(claimed.logLines, 0U);
  EXPECT_EQ(storage_->jobs().counts("ep").inProgress, 1U);
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, 0U);
  EXPECT_TRUE(claim(1).empty());
  EXPECT_EQ(complete(claimed.lease, "[1.0]"), ReportResult::accepted);
  EXPECT_EQ(find("a")->output, "[1.0]");
}

// The same job by both ways, in two endpoints: every value open to reading is the same.
TEST_P(InsertAndClaimSuite, TheJobIsAsAfterTwoSteps) {
  JobSpec brief = spec("a", "one");
  brief.policy.ttl = Millis(10'000);
  brief.policy.executionTimeout = Millis(5'000);
  const auto done = offer(brief, {"w0"});
  if (!done) return;
  brief.id = "b";
  brief.endpoint = "two";
  submit(brief);
  ASSERT_EQ(storage_->leases().claim(std::vector{ClaimWant{"two", {"w0"}}}, holder_, nextCall()).jobs.size(), 1U);
  const auto same = [&] {
    auto one = find("a", "one");
    auto two = find("b", "two");
    ASSERT_EQ(one.has_value(), two.has_value());
    if (!one) return;
    two->id = "a";
    two->endpoint = "one";
    EXPECT_EQ(describe(*one), describe(*two));
  };
  same();
  EXPECT_EQ(testkit::release(storage_->leases(), std::vector{LeaseRef{"a", 1}, LeaseRef{"b", 1}}), 2U);
  same();
  EXPECT_EQ(storage_->leases()
                .claim(std::vector{ClaimWant{"one", {"w0"}}, ClaimWant{"two", {"w0"}}}, holder_, nextCall())
                .jobs.size(),
            2U);
  same();
  clock_.advance(Millis(5'000));
  (void)storage_->leases().sweep(100);
  EXPECT_EQ(find("a", "one")->state, JobState::timedOut);
  same();
  clock_.advance(Millis(5'000));
  same();
  EXPECT_EQ(storage_->leases().sweep(100).removed, 2U);
}

TEST_P(InsertAndClaimSuite, AQueueComesFirst) {
  submit("first");
  submit("second");
  const auto one = offer(spec("third"), {"w1"});
  if (!one) return;
  ASSERT_EQ(one->claimed.size(), 1U);
  EXPECT_EQ(one->claimed[0].lease.job, "first");
  EXPECT_EQ(stateOf("third"), JobState::inQueue);
  JobSpec urgent = spec("urgent");
  urgent.policy.priority = -1;
  const auto all = offer(urgent, {"w1", "w2", "w3", "w4"});
  ASSERT_EQ(all->claimed.size(), 3U);
  EXPECT_EQ(all->claimed[0].lease.job, "urgent") << "the policy decides about the order";
  EXPECT_EQ(all->claimed[0].input, urgent.input);
  EXPECT_EQ(all->claimed[1].lease.job, "second");
  EXPECT_EQ(all->claimed[2].lease.job, "third");
}

TEST_P(InsertAndClaimSuite, AnEndedLifeClaimsNoJob) {
  const Holder former = holder_;
  newLife();
  const auto done = offerAs({{"ep", {"w1"}}, former, nextCall()}, spec("a"));
  if (!done) return;
  EXPECT_TRUE(done->claimed.empty());
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
}

TEST_P(InsertAndClaimSuite, ARepeatedInsertClaimsNoFurtherJob) {
  const Idempotency key{"k", "hash"};
  if (!offer(spec("a"), {"w1"}, key)) return;
  EXPECT_TRUE(std::holds_alternative<Inserted>(storage_->jobs().insert(spec("a"), fifo_, {key})));
  const auto again = offer(spec("a"), {"w1"}, key);
  EXPECT_TRUE(std::holds_alternative<Inserted>(again->inserted));
  EXPECT_TRUE(again->claimed.empty());
  const auto other = offer(spec("b"), {"w1"}, key);
  ASSERT_TRUE(std::holds_alternative<Duplicate>(other->inserted));
  EXPECT_EQ(std::get<Duplicate>(other->inserted).id, "a");
  EXPECT_TRUE(other->claimed.empty());
  const auto conflict = offer(spec("c"), {"w1"}, Idempotency{"k", "other hash"});
  EXPECT_TRUE(std::holds_alternative<KeyConflict>(conflict->inserted));
  EXPECT_FALSE(find("b"));
  EXPECT_FALSE(find("c"));
}

TEST_P(InsertAndClaimSuite, TheClaimIsFoundByItsId) {
  const CallId id = nextCall();
  const ClaimWant want{"ep", {"w1"}};
  const auto done = offerAs({want, holder_, id}, spec("a"));
  if (!done) return;
  const auto found = storage_->leases().claimed(std::vector{want}, id);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].lease, (LeaseRef{"a", 1}));
  EXPECT_EQ(found[0].input, done->claimed[0].input);
}

TEST_P(InsertAndClaimSuite, ALostWorkerOfSuchAJobIsCounted) {
  if (!offer(spec("a"), {"w1"})) return;
  newLife();
  (void)storage_->leases().sweep(100);
  EXPECT_EQ(find("a")->losses, 1U);
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
}

}  // namespace jobq::testkit

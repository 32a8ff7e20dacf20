// Conformance: OutboxStore (outbox_store.h).
#pragma once

#include "testkit/storage_suite.h"

namespace jobq::testkit {

/// Brings jobs with a webhook to their ends.
class OutboxSuite : public StorageSuite {
 protected:
  JobSpec hooked(const JobId& id) {
    JobSpec job = spec(id);
    job.webhook = "http://example.com/hook";
    job.policy.executionTimeout = Millis(5'000);
    return job;
  }
  std::vector<Delivery> due() { return storage_->outbox().claimDue(100, Millis(30'000)); }
};

TEST_P(StorageSuite, AJobWithoutAWebhookOwesNothing) {
  bring("a", JobState::completed);
  EXPECT_TRUE(storage_->outbox().claimDue(9, Millis(1'000)).empty());
}

TEST_P(OutboxSuite, EveryEndOfAJobOwesACallWithItsSnapshot) {
  submit(hooked("done"));
  EXPECT_EQ(complete(claimOne(), "[1]"), Fenced::accepted);
  submit(hooked("cancelled"));
  (void)storage_->jobs().cancel({"ep", "cancelled"});
  submit(hooked("late"));
  (void)claimOne();
  clock_.advance(Millis(5'000));
  (void)sweep();
  JobSpec lost = hooked("lost");
  lost.maxAttempts = 1;
  submit(std::move(lost));
  (void)claimTimed(Millis(1'000));
  clock_.advance(Millis(1'000));
  (void)sweep();
  const auto owed = due();
  ASSERT_EQ(owed.size(), 4U);
  EXPECT_EQ(owed[0].id, "done.1");
  EXPECT_EQ(owed[0].url, "http://example.com/hook");
  EXPECT_EQ(owed[0].job.state, JobState::completed);
  EXPECT_EQ(owed[0].job.output, "[1]");
  EXPECT_EQ(owed[0].input, "{\"n\":1.0}");
  EXPECT_EQ(owed[1].id, "cancelled.0");
  EXPECT_EQ(owed[1].job.state, JobState::cancelled);
  EXPECT_EQ(owed[2].job.state, JobState::timedOut);
  EXPECT_EQ(owed[3].job.state, JobState::failed);
}

TEST_P(OutboxSuite, PurgeAndExpiryOweNothing) {
  submit(hooked("purged"));
  (void)storage_->jobs().purgeQueued("ep");
  submit(hooked("expired"));
  clock_.advance(Millis(86'400'000));
  (void)sweep();
  EXPECT_TRUE(due().empty());
}

TEST_P(OutboxSuite, TheSnapshotSurvivesRetryExpiryAndRemoval) {
  submit(hooked("a"));
  EXPECT_EQ(fail(claimOne(), "first"), Fenced::accepted);
  (void)storage_->jobs().requeue({"ep", "a"}, policy_);
  EXPECT_EQ(complete(claimOne(), "2"), Fenced::accepted);
  (void)storage_->jobs().remove("ep", 10);
  const auto owed = due();
  ASSERT_EQ(owed.size(), 2U);
  EXPECT_EQ(owed[0].job.error, "first");
  EXPECT_EQ(owed[1].job.output, "2");
  EXPECT_NE(owed[0].id, owed[1].id) << "one id for each end";
}

TEST_P(OutboxSuite, AClaimedCallIsHiddenUntilItsLeaseEnds) {
  submit(hooked("a"));
  EXPECT_EQ(complete(claimOne()), Fenced::accepted);
  EXPECT_EQ(due().size(), 1U);
  EXPECT_TRUE(due().empty());
  clock_.advance(Millis(30'000));
  EXPECT_EQ(due().size(), 1U);
  EXPECT_TRUE(storage_->outbox().reschedule("a.1", Millis(10'000)));
  clock_.advance(Millis(9'999));
  EXPECT_TRUE(due().empty());
  clock_.advance(Millis(1));
  EXPECT_EQ(due().size(), 1U);
  EXPECT_TRUE(storage_->outbox().settle("a.1", DeliveryState::delivered));
  clock_.advance(Millis(60'000));
  EXPECT_TRUE(due().empty());
  EXPECT_FALSE(storage_->outbox().settle("a.1", DeliveryState::abandoned)) << "not owed any more";
  EXPECT_FALSE(storage_->outbox().reschedule("a.1", Millis(1)));
  EXPECT_FALSE(storage_->outbox().settle("none", DeliveryState::delivered));
}

TEST_P(OutboxSuite, AttemptsAreRecordedListedAndReplayed) {
  submit(hooked("a"));
  EXPECT_EQ(complete(claimOne(), "[1]"), Fenced::accepted);
  clock_.advance(Millis(10));
  submit(hooked("b"));
  EXPECT_EQ(complete(claimOne()), Fenced::accepted);
  EXPECT_TRUE(storage_->outbox().recordAttempt("a.1", {{}, 500, Millis(12), "no", "body"}));
  EXPECT_FALSE(storage_->outbox().recordAttempt("none", {}));
  EXPECT_TRUE(storage_->outbox().settle("a.1", DeliveryState::abandoned));
  auto listed = storage_->outbox().list("ep", "a", 9);
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].state, DeliveryState::abandoned);
  EXPECT_EQ(listed[0].job.id, "a");
  EXPECT_EQ(listed[0].job.output, "");
  EXPECT_EQ(listed[0].input, "");
  ASSERT_EQ(listed[0].attempts.size(), 1U);
  EXPECT_EQ(listed[0].attempts[0].status, 500);
  EXPECT_EQ(listed[0].attempts[0].duration, Millis(12));
  EXPECT_EQ(listed[0].attempts[0].reason, "no");
  EXPECT_EQ(listed[0].attempts[0].reply, "body");
  EXPECT_EQ(listed[0].attempts[0].at, clock_.now());
  listed = storage_->outbox().list("ep", "", 9);
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0].job.id, "b") << "an endpoint's newest first";
  EXPECT_EQ(storage_->outbox().list("ep", "", 1).size(), 1U);
  EXPECT_TRUE(storage_->outbox().list("other", "a", 9).empty());
  EXPECT_TRUE(storage_->outbox().replay("a.1"));
  EXPECT_FALSE(storage_->outbox().replay("none"));
  const auto again = due();
  ASSERT_EQ(again.size(), 2U);
  for (const Delivery& delivery : again) {
    if (delivery.id == "a.1") {
      EXPECT_EQ(delivery.job.output, "[1]");
    }
  }
  EXPECT_EQ(storage_->outbox().list("ep", "a", 9)[0].attempts.size(), 1U) << "its record stays";
}

TEST_P(OutboxSuite, ASettledCallIsForgottenAfterADay) {
  submit(hooked("a"));
  EXPECT_EQ(complete(claimOne()), Fenced::accepted);
  EXPECT_TRUE(storage_->outbox().settle("a.1", DeliveryState::delivered));
  clock_.advance(kDeliveryRecordLife - Millis(1));
  (void)sweep();
  EXPECT_EQ(storage_->outbox().list("ep", "a", 9).size(), 1U);
  clock_.advance(Millis(1));
  (void)sweep();
  EXPECT_TRUE(storage_->outbox().list("ep", "a", 9).empty());
}

}  // namespace jobq::testkit

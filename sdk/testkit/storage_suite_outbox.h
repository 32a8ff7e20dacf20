// Conformance: OutboxStore (outbox_store.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

/// Fixture that brings jobs with a webhook to their ends.
class OutboxSuite : public StorageSuite {
 protected:
  JobSpec hooked(const JobId& id) {
    JobSpec job = spec(id);
    job.webhook = "http://example.com/hook";
    job.policy.executionTimeout = Millis(5'000);
    return job;
  }
  std::vector<Delivery> due() { return claimDue(Millis(30'000)); }
  static std::vector<JobId> idsOf(const std::vector<Delivery>& deliveries) {
    std::vector<JobId> ids;
    for (const Delivery& delivery : deliveries) ids.push_back(delivery.job.id);
    return ids;
  }
  /// Makes a job end so that a call to `url` is owed.
  void owe(const JobId& id, const std::string& url, const EndpointId& endpoint = "ep") {
    JobSpec job = hooked(id);
    job.endpoint = endpoint;
    job.webhook = url;
    submit(std::move(job));
    (void)jobs().cancel({endpoint, id});
  }
};

TEST_P(StorageSuite, AJobWithoutAWebhookOwesNoCall) {
  bring("a", JobState::completed);
  EXPECT_TRUE(claimDue(Millis(1'000)).empty());
}

TEST_P(OutboxSuite, EveryEndOfAJobOwesACallWithASnapshot) {
  submit(hooked("done"));
  EXPECT_EQ(complete(claimOne(), "[1]"), ReportResult::accepted);
  submit(hooked("cancelled"));
  (void)storage_->jobs().cancel({"ep", "cancelled"});
  submit(hooked("late"));
  (void)claimOne();
  clock_.advance(Millis(5'000));
  (void)sweep();
  JobSpec lost = hooked("lost");
  lost.maxAttempts = 1;
  submit(std::move(lost));
  (void)claimOne();
  newLife();
  (void)sweep();
  const auto owed = due();
  ASSERT_EQ(owed.size(), 4U);
  EXPECT_EQ(owed[0].id, "done.1");
  EXPECT_EQ(owed[0].url, "http://example.com/hook");
  EXPECT_EQ(owed[0].host, "example.com");
  EXPECT_EQ(owed[0].tries, 0U);
  EXPECT_EQ(owed[0].job.state, JobState::completed);
  EXPECT_EQ(owed[0].job.output, "[1]");
  EXPECT_EQ(owed[0].input, "{\"n\":1.0}");
  EXPECT_EQ(owed[1].id, "cancelled.0");
  EXPECT_EQ(owed[1].job.state, JobState::cancelled);
  EXPECT_EQ(owed[2].job.state, JobState::timedOut);
  EXPECT_EQ(owed[3].job.state, JobState::failed);
}

TEST_P(OutboxSuite, PurgeAndExpiryOweNoCall) {
  submit(hooked("purged"));
  (void)storage_->jobs().purgeQueued("ep");
  submit(hooked("expired"));
  clock_.advance(Millis(86'400'000));
  (void)sweep();
  EXPECT_TRUE(due().empty());
}

TEST_P(OutboxSuite, TheSnapshotSurvivesRetryExpiryAndRemoval) {
  submit(hooked("a"));
  EXPECT_EQ(fail(claimOne(), "first"), ReportResult::accepted);
  (void)requeue({"ep", "a"}, policy_);
  EXPECT_EQ(complete(claimOne(), "2"), ReportResult::accepted);
  (void)storage_->jobs().remove("ep", 10);
  const auto owed = due();
  ASSERT_EQ(owed.size(), 2U);
  EXPECT_EQ(owed[0].job.error, "first");
  EXPECT_EQ(owed[1].job.output, "2");
  EXPECT_NE(owed[0].id, owed[1].id) << "each end has a different delivery id";
}

TEST_P(OutboxSuite, AClaimedCallIsHiddenUntilItsLeaseEnds) {
  submit(hooked("a"));
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  EXPECT_EQ(due().size(), 1U);
  EXPECT_TRUE(due().empty());
  clock_.advance(Millis(30'000));
  EXPECT_EQ(due().size(), 1U);
  EXPECT_TRUE(storage_->outbox().reschedule(last("a.1"), Millis(10'000)));
  clock_.advance(Millis(9'999));
  EXPECT_TRUE(due().empty());
  clock_.advance(Millis(1));
  EXPECT_EQ(due().size(), 1U);
  EXPECT_TRUE(storage_->outbox().finishDelivery(last("a.1"), DeliveryState::delivered));
  clock_.advance(Millis(60'000));
  EXPECT_TRUE(due().empty());
  EXPECT_FALSE(storage_->outbox().finishDelivery(last("a.1"), DeliveryState::abandoned))
      << "the delivery is no longer owed";
  EXPECT_FALSE(storage_->outbox().reschedule(last("a.1"), Millis(1)));
  EXPECT_FALSE(storage_->outbox().finishDelivery(last("none"), DeliveryState::delivered));
}

TEST_P(OutboxSuite, DeliveriesAreListedByStateOverAllEndpoints) {
  for (const char* name : {"a", "b", "c", "d"}) {
    JobSpec job = hooked(name);
    job.endpoint = name < std::string("c") ? "ep" : "other";
    submit(std::move(job));
    (void)jobs().cancel({name < std::string("c") ? "ep" : "other", name});
    clock_.advance(Millis(10));
  }
  EXPECT_TRUE(outbox().finishDelivery(last("a.0"), DeliveryState::abandoned));
  EXPECT_TRUE(outbox().finishDelivery(last("c.0"), DeliveryState::delivered));
  const auto ids = [&](std::string_view endpoint, DeliveryState state, std::size_t limit = 9) {
    std::vector<std::string> found;
    for (const Delivery& delivery : outbox().list(endpoint, "", limit, state)) found.push_back(delivery.job.id);
    return found;
  };
  EXPECT_EQ(ids("", DeliveryState::owed), (std::vector<std::string>{"d", "b"}));
  EXPECT_EQ(ids("", DeliveryState::owed, 1), std::vector<std::string>{"d"});
  EXPECT_EQ(ids("ep", DeliveryState::owed), std::vector<std::string>{"b"});
  EXPECT_EQ(ids("", DeliveryState::abandoned), std::vector<std::string>{"a"});
  EXPECT_EQ(ids("", DeliveryState::delivered), std::vector<std::string>{"c"});
  clock_.advance(kDeliveryRecordLife);
  EXPECT_EQ(ids("", DeliveryState::abandoned), std::vector<std::string>{});
  EXPECT_EQ(ids("", DeliveryState::owed).size(), 2U);
}

TEST_P(OutboxSuite, AttemptsAreRecordedListedAndReplayed) {
  submit(hooked("a"));
  EXPECT_EQ(complete(claimOne(), "[1]"), ReportResult::accepted);
  clock_.advance(Millis(10));
  submit(hooked("b"));
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  EXPECT_TRUE(recordNext(storage_->outbox(), last("a.1"), {{}, 500, Millis(12), "no", "body"}));
  EXPECT_FALSE(recordNext(storage_->outbox(), last("none.1"), {}));
  EXPECT_TRUE(storage_->outbox().finishDelivery(last("a.1"), DeliveryState::abandoned));
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
  EXPECT_EQ(storage_->outbox().list("ep", "a", 9)[0].attempts.size(), 1U) << "the attempts stay recorded";
}

TEST_P(OutboxSuite, ASettledCallIsForgottenAfterADay) {
  submit(hooked("a"));
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  EXPECT_TRUE(storage_->outbox().finishDelivery(last("a.1"), DeliveryState::delivered));
  clock_.advance(kDeliveryRecordLife - Millis(1));
  (void)sweep();
  EXPECT_EQ(storage_->outbox().list("ep", "a", 9).size(), 1U);
  clock_.advance(Millis(1));
  EXPECT_FALSE(recordNext(outbox(), last("a.1"), {})) << "the record is forgotten with or without a sweep";
  EXPECT_FALSE(outbox().replay("a.1"));
  (void)sweep();
  EXPECT_TRUE(storage_->outbox().list("ep", "a", 9).empty());
}

TEST_P(OutboxSuite, ADeliveryHoldsTheJobAsOfTheEnd) {
  submit(hooked("a"));
  clock_.advance(Millis(100));
  const LeaseRef lease = claimOne();
  clock_.advance(Millis(100));
  EXPECT_EQ(leases().finish(lease, Failed{"bad luck", "[1.0]"}), ReportResult::accepted);
  const std::string ended = describeWithoutKey(*find("a"));
  (void)jobs().setTtl({"ep", "a"}, Millis(1'000));
  clock_.advance(Millis(1'000));
  sweepAll();
  EXPECT_FALSE(find("a"));
  const auto owed = due();
  ASSERT_EQ(owed.size(), 1U);
  EXPECT_EQ(describe(owed[0].job), ended);
  EXPECT_EQ(owed[0].state, DeliveryState::owed);
  EXPECT_TRUE(owed[0].attempts.empty());
}

TEST_P(OutboxSuite, OnlyTheReportOfTheEndOwesACall) {
  submit(hooked("a"));
  const LeaseRef lease = claimOne();
  (void)testkit::release(leases(), std::vector{lease});
  EXPECT_EQ(complete(lease), ReportResult::staleAttempt);
  const LeaseRef again = claimOne();
  EXPECT_EQ(complete(again), ReportResult::accepted);
  EXPECT_EQ(complete(again), ReportResult::accepted) << "a repeated report";
  EXPECT_EQ(complete(again, "2"), ReportResult::staleAttempt);
  (void)jobs().cancel({"ep", "a"});
  const auto owed = due();
  ASSERT_EQ(owed.size(), 1U);
  EXPECT_EQ(owed[0].id, "a." + std::to_string(again.attempt));
}

TEST_P(OutboxSuite, ALostJobBackInTheQueueOwesNoCall) {
  submit(hooked("a"));
  (void)claimOne();
  newLife();
  (void)sweep();
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
  EXPECT_TRUE(due().empty());
}

TEST_P(OutboxSuite, EachEndHasItsOwnId) {
  submit(hooked("a"));
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(fail(claimOne(), std::to_string(i)), ReportResult::accepted);
    ids.push_back("a." + std::to_string(find("a")->attempt));
    ASSERT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, policy_)));
    clock_.advance(Millis(1));
  }
  (void)jobs().cancel({"ep", "a"});
  ids.push_back("a." + std::to_string(find("a")->attempt));
  const auto listed = outbox().list("ep", "a", 9);
  ASSERT_EQ(listed.size(), 4U);
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(listed[i].id, ids[i]) << "a job's, oldest first";
  EXPECT_EQ(listed[1].job.error, "1");
  EXPECT_EQ(listed[3].job.state, JobState::cancelled);
  EXPECT_EQ(listed[0].url, "http://example.com/hook");
  EXPECT_EQ(outbox().list("ep", "a", 2).size(), 2U);
}

TEST_P(OutboxSuite, TriesAreCountedFromTheDebtOn) {
  owe("a", "http://example.com/");
  EXPECT_TRUE(recordNext(outbox(), last("a.0"), {{}, 500, Millis(1), "no", ""}));
  EXPECT_TRUE(recordNext(outbox(), last("a.0"), {{}, 500, Millis(1), "no", ""}));
  EXPECT_EQ(due().at(0).tries, 2U);
  EXPECT_TRUE(outbox().reschedule(last("a.0"), Millis(0)));
  EXPECT_EQ(due().at(0).tries, 2U);
  EXPECT_TRUE(outbox().finishDelivery(last("a.0"), DeliveryState::abandoned));
  EXPECT_EQ(outbox().list("ep", "a", 9).at(0).tries, 2U);
  EXPECT_TRUE(outbox().replay("a.0"));
  const auto again = due();
  EXPECT_EQ(again.at(0).tries, 0U);
  EXPECT_EQ(again.at(0).attempts.size(), 2U) << "the earlier attempts stay recorded";
  EXPECT_TRUE(recordNext(outbox(), last("a.0"), {}));
  EXPECT_EQ(outbox().list("ep", "a", 9).at(0).tries, 1U);
  EXPECT_EQ(outbox().list("ep", "a", 9).at(0).attempts.size(), 3U);
}

TEST_P(OutboxSuite, AJobsDeliveriesAreFoundWithoutItsEndpoint) {
  owe("a", "http://example.com/", "here");
  owe("b", "http://example.com/", "there");
  EXPECT_EQ(outbox().list("", "a", 9).size(), 1U);
  EXPECT_EQ(outbox().list("", "b", 9).at(0).job.endpoint, "there");
  EXPECT_EQ(outbox().list("", "b", 9).at(0).host, "example.com");
  EXPECT_TRUE(outbox().list("here", "b", 9).empty());
  EXPECT_TRUE(outbox().list("", "", 9).empty());
  EXPECT_TRUE(outbox().list("", "c", 9).empty());
}

TEST_P(OutboxSuite, ReplayIsForEveryState) {
  submit(hooked("a"));
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  for (DeliveryState state : {DeliveryState::delivered, DeliveryState::abandoned}) {
    EXPECT_EQ(due().size(), 1U);
    EXPECT_TRUE(outbox().finishDelivery(last("a.1"), state));
    EXPECT_EQ(outbox().list("ep", "a", 9).at(0).state, state);
    EXPECT_TRUE(outbox().replay("a.1"));
    EXPECT_EQ(outbox().list("ep", "a", 9).at(0).state, DeliveryState::owed);
  }
  EXPECT_EQ(due().size(), 1U);
  EXPECT_TRUE(outbox().replay("a.1")) << "a replay makes a hidden delivery due at once";
  EXPECT_EQ(due().size(), 1U);
  EXPECT_TRUE(outbox().reschedule(last("a.1"), Millis(60'000)));
  EXPECT_TRUE(outbox().replay("a.1"));
  EXPECT_EQ(due().size(), 1U);
}

TEST_P(OutboxSuite, AttemptsAreKeptOldestFirst) {
  submit(hooked("a"));
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  std::vector<Instant> times;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(
        recordNext(outbox(), last("a.1"), {{}, 500 + i, Millis(i), "r" + std::to_string(i), std::string(1'024, 'b')}));
    times.push_back(clock_.now());
    clock_.advance(Millis(10'000));
  }
  EXPECT_TRUE(outbox().finishDelivery(last("a.1"), DeliveryState::abandoned));
  EXPECT_FALSE(recordNext(outbox(), last("a.1"), {})) << "the delivery is no longer owed";
  const auto listed = outbox().list("ep", "a", 9);
  ASSERT_EQ(listed.at(0).attempts.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(listed[0].attempts[i].status, 500 + static_cast<int>(i));
    EXPECT_EQ(listed[0].attempts[i].at, times[i]);
    EXPECT_EQ(listed[0].attempts[i].reply, std::string(1'024, 'b'));
  }
  EXPECT_EQ(outbox().list("ep", "", 9).at(0).attempts.size(), 3U);
}

TEST_P(OutboxSuite, AnOwedCallIsKeptWithoutALimitOfTime) {
  submit(hooked("a"));
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  clock_.advance(kDeliveryRecordLife * 3);
  sweepAll();
  EXPECT_EQ(due().size(), 1U);
  EXPECT_TRUE(outbox().finishDelivery(last("a.1"), DeliveryState::delivered));
  clock_.advance(Millis(80'000'000));
  EXPECT_TRUE(outbox().replay("a.1"));
  clock_.advance(Millis(80'000'000));
  sweepAll();
  EXPECT_EQ(due().size(), 1U) << "owed again";
}

TEST_P(OutboxSuite, AnEndpointsSettledCallsAreBoundedAndTheOldestGo) {
  constexpr int kOver = 5;
  const auto owe = [this](const JobId& id, const EndpointId& endpoint) {
    JobSpec job = hooked(id);
    job.endpoint = endpoint;
    submit(std::move(job));
    (void)jobs().cancel({endpoint, id});
  };
  const auto finish = [this](const JobId& id) {
    EXPECT_TRUE(outbox().finishDelivery(last(id + ".0"), DeliveryState::delivered)) << id;
  };
  for (int i = 0; i < kOver; ++i) owe("old" + std::to_string(i), "ep");
  owe("elsewhere", "other");
  clock_.advance(Millis(1));
  constexpr int kThreads = 16;
  constexpr int kNew = static_cast<int>(kMaxDeliveriesPerEndpoint);
  race(kThreads, [&](int i) {
    for (int n = i; n < kNew; n += kThreads) owe("new" + std::to_string(n), "ep");
  });
  sweepAll();
  EXPECT_EQ(outbox().list("ep", "", 5'000).size(), static_cast<std::size_t>(kNew + kOver))
      << "owed deliveries do not count";
  for (int i = 0; i < kOver; ++i) finish("old" + std::to_string(i));
  finish("elsewhere");
  clock_.advance(Millis(1));
  race(kThreads, [&](int i) {
    for (int n = i; n < kNew; n += kThreads) finish("new" + std::to_string(n));
  });
  sweepAll();
  const auto listed = outbox().list("ep", "", 5'000);
  EXPECT_EQ(listed.size(), kMaxDeliveriesPerEndpoint);
  for (const Delivery& delivery : listed)
    EXPECT_TRUE(delivery.job.id.starts_with("new")) << "the oldest deliveries are removed first";
  EXPECT_EQ(outbox().list("other", "", 5'000).size(), 1U);
  EXPECT_FALSE(outbox().replay("old0.0"));
}

}  // namespace jobq::testkit

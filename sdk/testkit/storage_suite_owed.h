// Conformance: the owed deliveries of an endpoint, and the bounds on owed deliveries (OutboxStore::owed,
// OutboxStore::abandonOwed).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"
#include "testkit/storage_suite_outbox.h"
#include "testkit/storage_suite_restart.h"

namespace jobq::testkit {

/// Fixture that brings endpoints to and beyond the bounds on owed deliveries.
class OwedSuite : public OutboxSuite {
 protected:
  static constexpr OwedBounds kNoBounds{Millis(1'000'000'000'000), 1'000'000};
  static constexpr OwedBounds kADay{Millis(86'400'000), 1'000'000};
  static constexpr OwedBounds atMost(std::size_t count) { return {kNoBounds.maxAge, count}; }

  std::uint64_t owedBy(const EndpointId& endpoint = "ep") { return outbox().owed(endpoint).count; }
  Millis oldestAge(const EndpointId& endpoint = "ep") { return outbox().owed(endpoint).oldestAge; }
  void oweAll(const std::vector<JobId>& ids, const EndpointId& endpoint = "ep") {
    for (const JobId& id : ids) owe(id, "http://example.com/", endpoint);
  }
  void oweSome(int count, const EndpointId& endpoint = "ep") {
    for (int i = 0; i < count; ++i) owe(endpoint + "-" + std::to_string(i), "http://example.com/", endpoint);
  }
  /// Returns the delivery of a job that was cancelled before its first run.
  Delivery of(const JobId& id) { return outbox().list("", id, 9).at(0); }
  DeliveryState stateOfDelivery(const JobId& id) { return of(id).state; }
  /// Returns the endpoint's owed jobs, oldest first.
  std::vector<JobId> owedJobs(const EndpointId& endpoint = "ep") {
    std::vector<JobId> ids;
    for (const Delivery& delivery : outbox().list(endpoint, "", 5'000)) {
      if (delivery.state == DeliveryState::owed) ids.push_back(delivery.job.id);
    }
    std::reverse(ids.begin(), ids.end());
    return ids;
  }
};

TEST_P(OwedSuite, OwedDeliveriesAreCountedAndHaveAnAge) {
  EXPECT_EQ(owedBy(), 0U);
  EXPECT_EQ(oldestAge(), Millis(0));
  owe("a", "http://one.example.com/");
  clock_.advance(Millis(500));
  owe("b", "http://two.example.com/");
  owe("c", "http://two.example.com/", "other");
  bring("none", JobState::completed);
  clock_.advance(Millis(200));
  EXPECT_EQ(owedBy(), 2U);
  EXPECT_EQ(oldestAge(), Millis(700));
  EXPECT_EQ(owedBy("other"), 1U);
  EXPECT_EQ(oldestAge("other"), Millis(200));
  EXPECT_EQ(owedBy("nowhere"), 0U);
  EXPECT_EQ(due().size(), 3U);
  EXPECT_EQ(owedBy(), 2U) << "a claimed delivery is owed";
  EXPECT_TRUE(outbox().reschedule(last("a.0"), Millis(60'000)));
  EXPECT_EQ(oldestAge(), Millis(700)) << "a delayed delivery keeps the age since the job's end";
  EXPECT_TRUE(outbox().finishDelivery(last("a.0"), DeliveryState::delivered));
  EXPECT_FALSE(outbox().finishDelivery(last("a.0"), DeliveryState::abandoned));
  EXPECT_EQ(owedBy(), 1U);
  EXPECT_EQ(oldestAge(), Millis(200));
  EXPECT_TRUE(outbox().finishDelivery(last("b.0"), DeliveryState::abandoned));
  EXPECT_EQ(owedBy(), 0U);
  EXPECT_EQ(oldestAge(), Millis(0));
  EXPECT_EQ(owedBy("other"), 1U);
}

TEST_P(OwedSuite, AReplayIsOwedSinceItsReplay) {
  owe("a", "http://example.com/");
  clock_.advance(Millis(900));
  EXPECT_TRUE(outbox().replay("a.0"));
  EXPECT_EQ(owedBy(), 1U) << "the delivery was owed before the replay";
  EXPECT_EQ(oldestAge(), Millis(0));
  EXPECT_TRUE(outbox().finishDelivery(last("a.0"), DeliveryState::abandoned));
  clock_.advance(Millis(1));
  EXPECT_TRUE(outbox().replay("a.0"));
  clock_.advance(Millis(30));
  EXPECT_EQ(owedBy(), 1U);
  EXPECT_EQ(oldestAge(), Millis(30));
}

TEST_P(OwedSuite, ADeletedEndpointStillOwesTheSameCalls) {
  oweAll({"a", "b"});
  while (jobs().remove("ep", 100) == 100) continue;
  EXPECT_EQ(counts().completed, 0U);
  EXPECT_EQ(owedBy(), 2U);
  EXPECT_TRUE(outbox().finishDelivery(last("a.0"), DeliveryState::delivered));
  EXPECT_EQ(owedBy(), 1U);
  owe("c", "http://example.com/");
  EXPECT_EQ(owedBy(), 2U) << "the name may belong to a later endpoint";
}

TEST_P(OwedSuite, NoDeliveryWithinTheBoundsIsAbandoned) {
  oweAll({"a", "b"});
  clock_.advance(kADay.maxAge - Millis(1));
  const AbandonResult result = outbox().abandonOwed({kADay.maxAge, 2}, 100);
  EXPECT_TRUE(result.endpoints.empty());
  EXPECT_FALSE(result.more);
  EXPECT_EQ(due().size(), 2U);
}

TEST_P(OwedSuite, OverdueDeliveriesAreAbandonedWithTheReason) {
  JobSpec old = hooked("old");
  old.policy.ttl = old.retention = kADay.maxAge * 2;
  submit(std::move(old));
  EXPECT_EQ(complete(claimOne(), "[1]"), ReportResult::accepted);
  EXPECT_TRUE(recordNext(outbox(), last("old.1"), {{}, 503, Millis(7), "busy", "later"}));
  owe("elsewhere", "http://example.com/", "other");
  clock_.advance(Millis(1));
  owe("young", "http://example.com/");
  clock_.advance(kADay.maxAge - Millis(1));
  const AbandonResult result = outbox().abandonOwed(kADay, 100);
  ASSERT_EQ(result.endpoints.size(), 2U);
  for (const AbandonedDeliveries& each : result.endpoints) {
    EXPECT_EQ(each.tooOld, 1U) << each.endpoint;
    EXPECT_EQ(each.tooMany, 0U) << each.endpoint;
  }
  EXPECT_FALSE(result.more);
  const Delivery given = of("old");
  EXPECT_EQ(given.state, DeliveryState::abandoned);
  EXPECT_EQ(given.tries, 1U) << "no call was made";
  ASSERT_EQ(given.attempts.size(), 2U);
  EXPECT_EQ(given.attempts[0].reason, "busy");
  EXPECT_EQ(given.attempts[1].reason, tooOldReason(kADay));
  EXPECT_EQ(given.attempts[1].status, 0);
  EXPECT_EQ(given.attempts[1].duration, Millis(0));
  EXPECT_EQ(given.attempts[1].reply, "");
  EXPECT_EQ(given.attempts[1].at, clock_.now());
  EXPECT_EQ(idsOf(due()), std::vector<JobId>{"young"});
  EXPECT_EQ(owedBy(), 1U);
  const auto job = find("old");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->output, "[1]") << "the job keeps the outcome";
  EXPECT_TRUE(outbox().abandonOwed(kADay, 100).endpoints.empty());
}

TEST_P(OwedSuite, AnAbandonedDeliveryMayBeReplayedWithTheFullTime) {
  owe("a", "http://example.com/");
  clock_.advance(kADay.maxAge);
  EXPECT_EQ(outbox().abandonOwed(kADay, 100).endpoints.size(), 1U);
  EXPECT_TRUE(outbox().replay("a.0"));
  clock_.advance(kADay.maxAge - Millis(1));
  EXPECT_TRUE(outbox().abandonOwed(kADay, 100).endpoints.empty());
  const auto again = due();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].tries, 0U);
  EXPECT_EQ(again[0].attempts.size(), 1U) << "the attempts stay recorded";
  EXPECT_TRUE(outbox().finishDelivery(again[0].claim(), DeliveryState::delivered));
}

TEST_P(OwedSuite, TheOldestOfTooManyDeliveriesAreAbandoned) {
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    owe(id, "http://" + std::string(id) + ".example.com/");
    clock_.advance(Millis(1));
  }
  oweAll({"x", "y"}, "other");
  EXPECT_TRUE(outbox().replay("a.0")) << "the newest from now on";
  const AbandonResult result = outbox().abandonOwed(atMost(3), 100);
  ASSERT_EQ(result.endpoints.size(), 1U);
  EXPECT_EQ(result.endpoints[0].endpoint, "ep");
  EXPECT_EQ(result.endpoints[0].tooOld, 0U);
  EXPECT_EQ(result.endpoints[0].tooMany, 2U);
  EXPECT_EQ(owedJobs(), (std::vector<JobId>{"a", "d", "e"}));
  EXPECT_EQ(of("b").attempts.at(0).reason, tooManyReason(atMost(3)));
  EXPECT_EQ(owedBy(), 3U);
  EXPECT_EQ(owedBy("other"), 2U);
}

TEST_P(OwedSuite, TooOldDeliveriesCountAmongTooMany) {
  oweAll({"a", "b"});
  clock_.advance(kADay.maxAge);
  oweAll({"c", "d", "e"});
  const AbandonResult result = outbox().abandonOwed({kADay.maxAge, 2}, 100);
  ASSERT_EQ(result.endpoints.size(), 1U);
  EXPECT_EQ(result.endpoints[0].tooOld, 2U);
  EXPECT_EQ(result.endpoints[0].tooMany, 1U);
  EXPECT_EQ(owedJobs(), (std::vector<JobId>{"d", "e"}));
}

TEST_P(OwedSuite, OnlyWaitingDeliveriesAreAbandoned) {
  owe("called", "http://called.example.com/");
  owe("putOff", "http://putOff.example.com/");
  owe("delivered", "http://delivered.example.com/");
  owe("failed", "http://failed.example.com/");
  clock_.advance(kADay.maxAge);
  EXPECT_TRUE(outbox().reschedule(last("putOff.0"), Millis(10'000)));
  EXPECT_TRUE(recordNext(outbox(), last("delivered.0"), {{}, 500, Millis(1), "no", ""}));
  EXPECT_TRUE(recordNext(outbox(), last("delivered.0"), {{}, 200, Millis(1), std::nullopt, "ok"}));
  EXPECT_TRUE(recordNext(outbox(), last("failed.0"), {{}, 500, Millis(1), "no", ""}));
  const std::vector<HostPlaces> one{{"called.example.com", 1}};
  const auto called = outbox().claimDue(one, Millis(60'000));
  ASSERT_EQ(called.size(), 1U);
  const OwedBounds none{kADay.maxAge, 0};
  ASSERT_EQ(outbox().abandonOwed(none, 100).endpoints.size(), 1U);
  EXPECT_EQ(owedJobs(), (std::vector<JobId>{"called", "putOff", "delivered"}));
  EXPECT_EQ(owedBy(), 3U);
  EXPECT_TRUE(recordNext(outbox(), called[0].claim(), {{}, 200, Millis(1), std::nullopt, ""}))
      << "the report of a claimed delivery counts";
  EXPECT_TRUE(outbox().finishDelivery(called[0].claim(), DeliveryState::delivered));
  clock_.advance(Millis(10'000));
  ASSERT_EQ(outbox().abandonOwed(none, 100).endpoints.size(), 1U);
  EXPECT_EQ(owedJobs(), (std::vector<JobId>{"delivered"})) << "an answered call only has to be settled";
  EXPECT_TRUE(outbox().finishDelivery(last("delivered.0"), DeliveryState::delivered));
}

TEST_P(OwedSuite, ALateReportOfAnAbandonedDeliveryHasNoEffect) {
  owe("a", "http://example.com/");
  const auto claimed = due();
  ASSERT_EQ(claimed.size(), 1U);
  clock_.advance(kADay.maxAge);
  EXPECT_EQ(outbox().abandonOwed(kADay, 100).endpoints.size(), 1U) << "the lease of the claim has ended";
  EXPECT_FALSE(recordNext(outbox(), claimed[0].claim(), {{}, 200, Millis(1), std::nullopt, ""}));
  EXPECT_FALSE(outbox().reschedule(claimed[0].claim(), Millis(0)));
  EXPECT_FALSE(outbox().finishDelivery(claimed[0].claim(), DeliveryState::delivered));
  EXPECT_TRUE(outbox().finishDelivery(claimed[0].claim(), DeliveryState::abandoned))
      << "the delivery is already abandoned";
  EXPECT_EQ(stateOfDelivery("a"), DeliveryState::abandoned);
  EXPECT_EQ(owedBy(), 0U);
}

TEST_P(OwedSuite, ACallIsBoundedAndReportsRemainingWork) {
  oweSome(5);
  oweSome(3, "other");
  clock_.advance(kADay.maxAge);
  std::size_t abandoned = 0;
  for (const std::size_t expected : {3U, 3U, 2U}) {
    const AbandonResult result = outbox().abandonOwed(kADay, 3);
    std::size_t count = 0;
    for (const AbandonedDeliveries& each : result.endpoints) count += each.tooOld;
    EXPECT_EQ(count, expected);
    EXPECT_EQ(result.more, expected == 3);
    abandoned += count;
    EXPECT_EQ(owedBy() + owedBy("other"), 8U - abandoned);
  }
}

TEST_P(OwedSuite, AFullRecordKeepsTheReason) {
  owe("a", "http://example.com/");
  for (std::size_t i = 0; i < kMaxAttempts; ++i) {
    EXPECT_TRUE(recordNext(outbox(), last("a.0"), {{}, 500, Millis(1), "no", ""}));
  }
  clock_.advance(kADay.maxAge);
  EXPECT_EQ(outbox().abandonOwed(kADay, 100).endpoints.size(), 1U);
  const Delivery given = of("a");
  ASSERT_EQ(given.attempts.size(), kMaxAttempts);
  EXPECT_EQ(given.attempts.back().reason, tooOldReason(kADay));
}

TEST_P(OwedSuite, AbandonedDeliveriesCountAsSettled) {
  constexpr int kMore = static_cast<int>(kMaxDeliveriesPerEndpoint) + 5;
  race(8, [&](int thread) {
    for (int i = thread; i < kMore; i += 8) owe("j" + std::to_string(i), "http://example.com/");
  });
  clock_.advance(kADay.maxAge);
  while (outbox().abandonOwed(kADay, 300).more) continue;
  EXPECT_EQ(owedBy(), 0U);
  EXPECT_EQ(outbox().list("ep", "", 5'000).size(), kMaxDeliveriesPerEndpoint);
  clock_.advance(kDeliveryRecordLife);
  sweepAll();
  EXPECT_TRUE(outbox().list("ep", "", 5'000).empty());
}

TEST_P(OwedSuite, TheCountIsRightWhateverHappensAtOnce) {
  constexpr int kThreads = 8;
  constexpr int kEach = 40;
  race(kThreads, [&](int thread) {
    for (int i = 0; i < kEach; ++i) {
      const std::string id = "t" + std::to_string(thread) + "-" + std::to_string(i);
      owe(id, "http://example.com/");
      if (i % 4 == 1) (void)outbox().finishDelivery(last(id + ".0"), DeliveryState::delivered);
      if (i % 4 == 2) (void)outbox().replay(id + ".0");
      if (i % 8 == 3) (void)outbox().abandonOwed(atMost(60), 20);
    }
  });
  EXPECT_EQ(owedBy(), owedJobs().size());
  EXPECT_GT(owedBy(), 0U);
  while (outbox().abandonOwed(atMost(7), 100).more) continue;
  EXPECT_EQ(owedBy(), 7U);
  EXPECT_EQ(owedJobs().size(), 7U);
}

TEST_P(RestartSuite, OwedDeliveriesAreCountedAgain) {
  for (const JobId id : {"a", "b", "c"}) {
    JobSpec job = spec(id);
    job.webhook = "http://example.com/";
    submit(std::move(job));
    (void)jobs().cancel({"ep", id});
    clock_.advance(Millis(10));
  }
  EXPECT_TRUE(outbox().finishDelivery(last("b.0"), DeliveryState::abandoned));
  EXPECT_TRUE(outbox().replay("a.0"));
  reopen();
  EXPECT_EQ(outbox().owed("ep").count, 2U);
  EXPECT_EQ(outbox().owed("ep").oldestAge, Millis(10)) << "the oldest delivery is c, because a was replayed";
  EXPECT_EQ(outbox().abandonOwed({Millis(10), 9}, 9).endpoints.at(0).tooOld, 1U);
  EXPECT_EQ(outbox().list("ep", "c", 9).at(0).state, DeliveryState::abandoned);
  EXPECT_EQ(outbox().owed("ep").count, 1U);
}

}  // namespace jobq::testkit

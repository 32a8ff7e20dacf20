// Conformance: choice of deliveries by a claim, and acceptance of reports (sdk/include/jobq/outbox_store.h).
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"
#include "testkit/storage_suite_outbox.h"

namespace jobq::testkit {

TEST_P(OutboxSuite, DueCallsOfAHostComeOldestFirstWithinItsPlaces) {
  for (int i = 0; i < 12; ++i) {
    const JobId id = "j" + std::to_string(i);
    submit(hooked(id));
    (void)jobs().cancel({"ep", id});
    if (i % 2 == 0) clock_.advance(Millis(1));
  }
  const std::vector<HostPlaces> three{{"example.com", 3}};
  std::vector<JobId> order;
  for (int i = 0; i < 4; ++i) {
    const auto some = outbox().claimDue(three, Millis(30'000));
    EXPECT_EQ(some.size(), 3U);
    for (const JobId& id : idsOf(some)) order.push_back(id);
  }
  EXPECT_TRUE(due().empty());
  ASSERT_EQ(order.size(), 12U);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], "j" + std::to_string(i));
}

TEST_P(OutboxSuite, AClaimTakesDeliveriesOfTheNamedHostsOnly) {
  owe("a", "http://u:p@Slow.example.com/1");
  owe("b", "http://slow.example.com:8443/1");
  clock_.advance(Millis(1));
  owe("c", "https://quick.example.com?x");
  owe("d", "https://SLOW.example.com?2");
  EXPECT_TRUE(outbox().claimDue({}, Millis(30'000)).empty());
  const std::vector<HostPlaces> quick{{"quick.example.com", 9}, {"nobody.example.com", 9}, {"slow.example.com", 0}};
  EXPECT_EQ(idsOf(outbox().claimDue(quick, Millis(30'000))), std::vector<JobId>{"c"});
  EXPECT_TRUE(outbox().claimDue(quick, Millis(30'000)).empty());
  const std::vector<HostPlaces> slow{{"slow.example.com", 9}, {"slow.example.com:8443", 9}};
  const auto claimed = outbox().claimDue(slow, Millis(30'000));
  EXPECT_EQ(idsOf(claimed), (std::vector<JobId>{"a", "b", "d"})) << "the skipped deliveries are still due";
  EXPECT_EQ(claimed.at(0).url, "http://u:p@Slow.example.com/1");
  EXPECT_EQ(claimed.at(1).host, "slow.example.com:8443");
}

TEST_P(OutboxSuite, AClaimTakesTheHostsInTurns) {
  for (int i = 0; i < 3; ++i) owe("x" + std::to_string(i), "http://x/");
  clock_.advance(Millis(1));
  for (int i = 0; i < 3; ++i) owe("y" + std::to_string(i), "http://y/");
  owe("z", "http://z/");
  const std::vector<HostPlaces> hosts{{"z", 9}, {"y", 2}, {"x", 9}};
  EXPECT_EQ(idsOf(outbox().claimDue(hosts, Millis(30'000))), (std::vector<JobId>{"x0", "y0", "z", "x1", "y1", "x2"}));
  EXPECT_EQ(idsOf(due()), std::vector<JobId>{"y2"});
}

TEST_P(OutboxSuite, HostsWithDueCallsAreListedInPages) {
  EXPECT_TRUE(outbox().dueHosts("", 9).hosts.empty());
  for (const char* host : {"d", "b", "c", "a", "e"}) {
    for (int i = 0; i < 2; ++i) owe(host + std::to_string(i), "http://" + std::string(host) + "/");
  }
  EXPECT_TRUE(outbox().reschedule(last("b0.0"), Millis(1)));
  EXPECT_TRUE(outbox().reschedule(last("c0.0"), Millis(1)));
  EXPECT_TRUE(outbox().reschedule(last("c1.0"), Millis(1)));
  EXPECT_TRUE(outbox().finishDelivery(last("e0.0"), DeliveryState::delivered));
  EXPECT_TRUE(outbox().finishDelivery(last("e1.0"), DeliveryState::delivered));
  const DueHosts all = outbox().dueHosts("", 9);
  EXPECT_EQ(all.hosts, (std::vector<std::string>{"a", "b", "d"}));
  EXPECT_EQ(all.next, "");
  const DueHosts first = outbox().dueHosts("", 3);
  EXPECT_EQ(first.hosts, (std::vector<std::string>{"a", "b"}))
      << "the page covers three hosts, and the third has no delivery due";
  EXPECT_EQ(first.next, "c");
  const DueHosts second = outbox().dueHosts(first.next, 3);
  EXPECT_EQ(second.hosts, std::vector<std::string>{"d"});
  EXPECT_EQ(second.next, "");
  EXPECT_EQ(outbox().dueHosts("", 4).next, "") << "no host follows the fourth";
  clock_.advance(Millis(1));
  EXPECT_EQ(outbox().dueHosts("b", 1).hosts, std::vector<std::string>{"c"});
}

TEST_P(OutboxSuite, AReportOfAnEarlierClaimHasNoEffect) {
  owe("a", "http://example.com/");
  const DeliveryClaim first = due().at(0).claim();
  clock_.advance(Millis(30'000));
  EXPECT_TRUE(recordNext(outbox(), first, {{}, 500, Millis(1), "no", ""})) << "the delivery has no later claim";
  const Delivery again = due().at(0);
  EXPECT_GT(again.claims, first.number);
  const auto isLate = [&](const DeliveryClaim& claim, DeliveryState reported = DeliveryState::delivered) {
    const Delivery before = outbox().list("ep", "a", 9).at(0);
    EXPECT_FALSE(recordNext(outbox(), claim, {{}, 200, Millis(1), std::nullopt, ""}));
    EXPECT_FALSE(outbox().reschedule(claim, Millis(0)));
    EXPECT_FALSE(outbox().finishDelivery(claim, reported));
    const Delivery after = outbox().list("ep", "a", 9).at(0);
    EXPECT_EQ(after.state, before.state);
    EXPECT_EQ(after.dueAt, before.dueAt);
    EXPECT_EQ(after.tries, before.tries);
    EXPECT_EQ(after.attempts.size(), before.attempts.size());
  };
  isLate(first);
  isLate({"a.0", again.claims + 1});
  EXPECT_FALSE(isDelivered(outbox().list("ep", "a", 9).at(0).attempts.back()));
  EXPECT_TRUE(recordNext(outbox(), again.claim(), {{}, 200, Millis(1), std::nullopt, ""}));
  EXPECT_TRUE(isDelivered(outbox().list("ep", "a", 9).at(0).attempts.back()));
  EXPECT_TRUE(outbox().replay("a.0"));
  isLate(again.claim());
  const Delivery replayed = due().at(0);
  EXPECT_EQ(replayed.tries, 0U);
  isLate(again.claim());
  EXPECT_TRUE(outbox().finishDelivery(replayed.claim(), DeliveryState::delivered));
  isLate(replayed.claim(), DeliveryState::abandoned);
  EXPECT_TRUE(outbox().replay("a.0"));
  isLate(replayed.claim());
  EXPECT_EQ(due().size(), 1U) << "the replay is not lost";
}

TEST_P(OutboxSuite, ARecordKeepsTheLastAttempts) {
  owe("a", "http://example.com/");
  owe("b", "http://example.com/");
  const int all = static_cast<int>(kMaxAttempts) + 5;
  for (int i = 0; i < all; ++i) {
    EXPECT_TRUE(recordNext(outbox(), last("a.0"), {{}, i, Millis(1), "no", "reply"}));
    EXPECT_TRUE(recordNext(outbox(), last("b.0"), {{}, 500, Millis(1), "no", "reply"}));
  }
  const Delivery kept = outbox().list("ep", "a", 9).at(0);
  EXPECT_EQ(kept.tries, static_cast<std::uint32_t>(all));
  ASSERT_EQ(kept.attempts.size(), kMaxAttempts);
  EXPECT_EQ(kept.attempts.front().status, 5);
  EXPECT_EQ(kept.attempts.back().status, all - 1);
  EXPECT_EQ(kept.attempts.back().reply, "reply");
}

TEST_P(OutboxSuite, AnEndpointsListIsWithoutReplies) {
  submit(hooked("a"));
  EXPECT_EQ(fail(claimOne(), std::string(50'000, 'e')), ReportResult::accepted);
  EXPECT_TRUE(recordNext(outbox(), last("a.1"), {{}, 500, Millis(1), "no", "reply"}));
  const Delivery listed = outbox().list("ep", "", 9).at(0);
  EXPECT_EQ(listed.attempts.at(0).reply, "");
  EXPECT_EQ(listed.attempts.at(0).reason, "no");
  EXPECT_EQ(listed.job.error.size(), kListedErrorBytes + 3);
  EXPECT_EQ(outbox().list("ep", "a", 9).at(0).job.error.size(), kListedErrorBytes + 3);
  EXPECT_EQ(due().at(0).job.error.size(), 50'000U) << "a claim reads the whole error";
}

}  // namespace jobq::testkit

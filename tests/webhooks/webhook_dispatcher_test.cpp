// Tests of the WebhookDispatcher: deliveries, their number of tries, and fairness between hosts (core/http/API.md,
// "Webhook attempts"; core/decisions/webhooks.md).
#include <openssl/hmac.h>

#include "jobq/base64.h"
#include "jobq/json.h"
#include "webhook_fixture.h"

namespace jobq {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::Optional;

TEST_P(DeliveryTest, ASuccessfulCallIsRecordedAndSettled) {
  open();
  owe("a", "http://h/x?token=1");
  webhooks_->notify();
  ASSERT_TRUE(until([&] { return isSettled("a"); }));
  const Delivery done = delivery("a");
  EXPECT_EQ(done.state, DeliveryState::delivered);
  ASSERT_EQ(done.attempts.size(), 1U);
  EXPECT_EQ(done.attempts[0].status, 200);
  EXPECT_EQ(done.attempts[0].reason, std::nullopt);
  EXPECT_EQ(done.attempts[0].reply, "ok");
  const auto seen = net_->seen();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].call.url, "http://h/x?token=1");
  EXPECT_EQ(seen[0].call.timeout, Millis(10'000));
  EXPECT_THAT(seen[0].call.body, HasSubstr(R"("id":"a","status":"CANCELLED")"));
  EXPECT_THAT(seen[0].call.body, HasSubstr(R"("input":{"n":1.0},"webhook":"http://h/x?token=1"})"));
}

TEST_P(DeliveryTest, ADeliveryIsAbandonedAfterThreeTriesTenSecondsApart) {
  net_->script("h", {FakeTransport::failing(500), FakeTransport::failing(404), FakeTransport::failing(302)});
  net_->hang("h");
  const Instant began = clock_.now();
  owe("a", "http://u:secret@h/?token=hidden");
  open();
  for (std::size_t tries = 1; tries < 3; ++tries) {
    ASSERT_TRUE(until([&] { return net_->running() == 1; }));
    awaitRest();
    const std::size_t passes = outbox_->looks();
    net_->letOneGo("h");
    ASSERT_TRUE(until([&] { return outbox_->looks() > passes; })) << "the end of a delivery notifies the scheduler";
    awaitRest();
    clock_.advance(Millis(9'999));
    // The scheduler has found no due delivery, and waits for just this moment.
    clock_.awaitWaiter(Millis(1), Millis(1));
    EXPECT_EQ(net_->seen().size(), tries);
    clock_.advance(Millis(1));
  }
  ASSERT_TRUE(until([&] { return net_->running() == 1; }));
  awaitRest();
  const std::size_t passes = outbox_->looks();
  net_->letGo("h");
  ASSERT_TRUE(until([&] { return isSettled("a"); }));
  // A pass that is under way while the clock moves by a minute would count as a long one, and a pause follows.
  ASSERT_TRUE(until([&] { return outbox_->looks() > passes; })) << "the end of a delivery notifies the scheduler";
  awaitRest();
  const Delivery given = delivery("a");
  EXPECT_EQ(given.state, DeliveryState::abandoned);
  ASSERT_EQ(given.attempts.size(), 3U);
  EXPECT_EQ(given.attempts[1].status, 404);
  EXPECT_EQ(given.attempts[1].reason, "the receiver answered 404");
  EXPECT_EQ(given.attempts[1].reply, "no");
  const auto seen = net_->seen();
  ASSERT_EQ(seen.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen[i].at, began + Millis(10'000) * static_cast<int>(i));
    EXPECT_EQ(given.attempts[i].at, seen[i].at);
    EXPECT_EQ(seen[i].header("webhook-id"), "a.0") << "the same in all attempts";
    EXPECT_EQ(seen[i].call.body, seen[0].call.body);
  }
  EXPECT_TRUE(until([&] { return log_.text().find("webhook.abandoned") != std::string::npos; }));
  EXPECT_THAT(log_.text(), Not(HasSubstr("secret")));
  EXPECT_THAT(log_.text(), Not(HasSubstr("hidden")));
  clock_.advance(Millis(60'000));
  awaitRest();
  EXPECT_EQ(net_->seen().size(), 3U);
}

TEST_P(DeliveryTest, ASuccessfulSecondTryIsTheLast) {
  net_->script("h", {FakeTransport::failing(500)});
  open();
  owe("a", "http://h/");
  webhooks_->notify();
  ASSERT_TRUE(inTime([&] { return isSettled("a"); }));
  EXPECT_EQ(delivery("a").state, DeliveryState::delivered);
  EXPECT_EQ(delivery("a").attempts.size(), 2U);
  EXPECT_EQ(net_->seen().size(), 2U);
}

TEST_P(DeliveryTest, TheDispatcherLooksEachSecondWithoutANotification) {
  open();
  awaitRest();
  owe("a", "http://h/");
  EXPECT_TRUE(net_->seen().empty());
  clock_.advance(Millis(1'000));
  EXPECT_TRUE(until([&] { return isSettled("a"); }));
}

// The clock runs on while a process or its machine is suspended, and a storage may block for minutes.
TEST_P(DeliveryTest, APassOfAnHourDelaysTheNextByTenSeconds) {
  std::atomic<bool> isOver = false;
  step_ = [&](std::string_view step) {
    if (step == "before claimDue" && !isOver.exchange(true)) clock_.advance(std::chrono::hours(1));
  };
  owe("a", "http://h/");
  open();
  ASSERT_TRUE(until([&] { return isSettled("a"); }));
  clock_.awaitWaiter(Millis(10'000), Millis(10'000));
  owe("b", "http://h/");
  webhooks_->notify();
  clock_.advance(Millis(10'000));
  EXPECT_TRUE(until([&] { return isSettled("b"); })) << "ten seconds have passed";
}

TEST_P(DeliveryTest, AReplayHasThreeTriesOfItsOwnAndKeepsTheRecord) {
  for (int i = 0; i < 6; ++i) net_->script("h", {FakeTransport::failing(500 + i)});
  open();
  owe("a", "http://h/");
  webhooks_->notify();
  ASSERT_TRUE(inTime([&] { return isSettled("a"); }));
  ASSERT_EQ(net_->seen().size(), 3U);
  EXPECT_TRUE(inner_->outbox().replay("a.0"));
  webhooks_->notify();
  ASSERT_TRUE(inTime([&] { return isSettled("a"); }));
  EXPECT_EQ(delivery("a").state, DeliveryState::abandoned);
  const auto attempts = delivery("a").attempts;
  ASSERT_EQ(attempts.size(), 6U);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(attempts[static_cast<std::size_t>(i)].status, 500 + i);
  for (const auto& seen : net_->seen()) EXPECT_EQ(seen.header("webhook-id"), "a.0");
  EXPECT_TRUE(inner_->outbox().replay("a.0"));
  webhooks_->notify();
  ASSERT_TRUE(until([&] { return isSettled("a"); }));
  EXPECT_EQ(delivery("a").state, DeliveryState::delivered);
}

// A replay comes at each moment of a delivery. A new call begins after the replay, independent of the report of the
// call under way.
TEST_P(DeliveryTest, AReplayIsNeverLost) {
  int number = 0;
  for (const bool fails : {false, true}) {
    for (const char* moment :
         {"before claimDue", "after claimDue", "before recordAttempt", "after recordAttempt",
          fails ? "before reschedule" : "before finishDelivery", fails ? "after reschedule" : "after finishDelivery"}) {
      const JobId id = "j" + std::to_string(++number);
      if (fails) net_->script(id, {FakeTransport::failing(500)});
      std::atomic<std::size_t> callsBefore = 0;
      std::atomic<bool> hasBegun = false;
      // The flag is set behind the replay: a delivery is settled "after finishDelivery", so a flag set earlier would
      // let the test stop the dispatcher between the settlement and the replay.
      std::atomic<bool> isReplayed = false;
      step_ = [&](std::string_view step) {
        if (step != moment || hasBegun.exchange(true)) return;
        callsBefore = net_->seen(id).size();
        EXPECT_TRUE(inner_->outbox().replay(id + ".0"));
        isReplayed = true;
      };
      owe(id, "http://" + id + "/");
      open();
      ASSERT_TRUE(inTime([&] { return isReplayed && isSettled(id); })) << moment;
      ASSERT_TRUE(inTime([&] { return net_->seen(id).size() > callsBefore; }))
          << "a replay " << moment << " is lost" << (fails ? ", of a call that failed" : "");
      webhooks_->stop();
      EXPECT_EQ(delivery(id).state, DeliveryState::delivered) << moment;
    }
  }
}

TEST_P(DeliveryTest, WhateverATransportThrowsIsAFailedAttempt) {
  net_->script("h",
               {[]() -> DeliveryResult { throw std::runtime_error("no route"); }, []() -> DeliveryResult { throw 7; },
                [] {
                  return DeliveryFailed{"", 0, ""};
                }});
  open();
  owe("a", "http://h/");
  webhooks_->notify();
  ASSERT_TRUE(inTime([&] { return isSettled("a"); }));
  EXPECT_EQ(delivery("a").state, DeliveryState::abandoned);
  const auto attempts = delivery("a").attempts;
  ASSERT_EQ(attempts.size(), 3U);
  EXPECT_EQ(attempts[0].reason, "no route");
  EXPECT_THAT(attempts[1].reason, Optional(HasSubstr("not a std::exception")));
  EXPECT_EQ(attempts[2].reason, "the transport gave no reason");
}

TEST_P(DeliveryTest, ADeliveryWithoutATransportIsAbandonedAtOnce) {
  open();
  owe("a", "gopher://h/");
  webhooks_->notify();
  ASSERT_TRUE(until([&] { return isSettled("a"); }));
  EXPECT_EQ(delivery("a").state, DeliveryState::abandoned);
  ASSERT_EQ(delivery("a").attempts.size(), 1U);
  EXPECT_THAT(delivery("a").attempts[0].reason, Optional(HasSubstr("webhook.transports")));
  EXPECT_TRUE(net_->seen().empty());
}

TEST_P(DeliveryTest, ARecordHasBounds) {
  net_->script("h", {[] {
                       return DeliveryFailed{std::string(5'000, 'r'), 500, std::string(5'000, 'b')};
                     },
                     [] {
                       return Delivered{204, std::string(5'000, 'c')};
                     }});
  open();
  owe("a", "http://h/");
  webhooks_->notify();
  ASSERT_TRUE(inTime([&] { return isSettled("a"); }));
  const auto attempts = delivery("a").attempts;
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].reply, std::string(1'024, 'b'));
  EXPECT_EQ(attempts[0].reason, std::string(256, 'r') + "...");
  EXPECT_EQ(attempts[1].reply, std::string(1'024, 'c'));
  EXPECT_EQ(attempts[1].status, 204);
}

TEST_P(DeliveryTest, TheSignatureEqualsTheReceiversComputation) {
  serverKey_ = "the server's";
  endpointSecrets_.keys["own"] = "its own";
  open();
  awaitRest();
  clock_.advance(Millis(1'999));
  owe("a", "http://h/");
  owe("b", "http://h/", "own");
  webhooks_->notify();
  ASSERT_TRUE(until([&] { return isSettled("a") && isSettled("b"); }));
  for (const auto& seen : net_->seen()) {
    const std::string id = seen.header("webhook-id");
    const std::string key = id == "a.0" ? "the server's" : "its own";
    const std::string timestamp = seen.header("webhook-timestamp");
    EXPECT_EQ(timestamp, std::to_string(toEpochMillis(seen.at) / 1'000));
    const std::string text = id + "." + timestamp + "." + seen.call.body;
    unsigned char mac[32];
    unsigned size = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
         text.size(), mac, &size);
    EXPECT_EQ(seen.header("webhook-signature"), "v1," + toBase64({reinterpret_cast<const char*>(mac), size})) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Over, DeliveryTest, testing::Values("memory", "sqlite"), nameOfStorage);

// Fairness between hosts

class CrowdTest : public DeliveryTest {};

TEST_P(CrowdTest, AHangingHostHasOnePlaceAndDelaysNoOtherHost) {
  net_->hang("slow");
  oweMany("s", 1'000, "http://slow/");
  open();
  ASSERT_TRUE(until([&] { return net_->running() == 1; }));
  for (int i = 0; i < 20; ++i) {
    const JobId id = "q" + std::to_string(i);
    owe(id, "http://quick/");
    webhooks_->notify();
    ASSERT_TRUE(until([&] { return isSettled(id); })) << "no time has passed";
  }
  EXPECT_EQ(net_->seen("slow").size(), 1U);
}

TEST_P(CrowdTest, EightHangingHostsWithLongQueuesDelayNoOtherHost) {
  for (int host = 0; host < 8; ++host) {
    const std::string name = "h" + std::to_string(host);
    net_->hang(name);
    oweMany(name + "-", 400, "http://" + name + "/");
  }
  open();
  ASSERT_TRUE(until([&] { return net_->running() == 8; }));
  owe("ninth", "http://ninth/");
  webhooks_->notify();
  ASSERT_TRUE(until([&] { return isSettled("ninth"); })) << "no time has passed";
  EXPECT_EQ(net_->seen().size(), 9U);
}

TEST_P(CrowdTest, AnsweringHostsHavePlacesAmongAnyNumberOfHangingHosts) {
  constexpr std::size_t kHosts = 70;
  open();
  owe("first", "http://good/");
  webhooks_->notify();
  ASSERT_TRUE(until([&] { return isSettled("first"); }));
  for (std::size_t host = 0; host < kHosts; ++host) {
    const std::string name = "h" + std::to_string(host);
    net_->hang(name);
    owe(name, "http://" + name + "/");
  }
  webhooks_->notify();
  ASSERT_TRUE(until([&] { return net_->running() == kPlacesForOthers; }));
  owe("second", "http://good/");
  owe("new", "http://new/");
  webhooks_->notify();
  ASSERT_TRUE(until([&] { return isSettled("second"); })) << "no time has passed";
  EXPECT_EQ(net_->running(), kPlacesForOthers);
  EXPECT_TRUE(net_->seen("new").empty()) << "the new host waits for the end of a call";
  for (std::size_t host = 0; host < kHosts; ++host) net_->letGo("h" + std::to_string(host));
  ASSERT_TRUE(until([&] { return isSettled("new"); }));
}

// The storage lists a thousand hosts at a time. Hosts of the first page take all places for hosts without an answer,
// and the next pass begins behind the first page.
TEST_P(CrowdTest, HostsOfALaterPageGetATurn) {
  for (int host = 0; host < 1'000; ++host) {
    const std::string name = "a" + std::to_string(1'000 + host);
    net_->hang(name);
    owe(name, "http://" + name + "/");
  }
  owe("z", "http://z/");
  open();
  ASSERT_TRUE(until([&] { return net_->running() == kPlacesForOthers; }));
  ASSERT_TRUE(net_->seen("z").empty());
  clock_.awaitWaiter(Millis(1), Millis(1'000));  // the pass is over
  net_->letOneGo(net_->seen().at(0).host);
  EXPECT_TRUE(until([&] { return isSettled("z"); }));
  for (int host = 0; host < 1'000; ++host) net_->letGo("a" + std::to_string(1'000 + host));
}

// The spellings of the name differ, the receiver is the same.
TEST_P(CrowdTest, TheSpellingsOfAnAddressAreTheSameHost) {
  net_->hang("127.0.0.1:8443");
  int job = 0;
  for (const char* spelling : {"127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1", "%31%32%37.1",
                               "[::ffff:127.0.0.1]", "[::FFFF:7F00:1]"}) {
    owe("j" + std::to_string(++job), "http://" + std::string(spelling) + ":8443/");
  }
  open();
  ASSERT_TRUE(until([&] { return net_->running() == 1; }));
  owe("other", "http://other/");
  webhooks_->notify();
  ASSERT_TRUE(until([&] { return isSettled("other"); }));
  EXPECT_EQ(net_->seen("127.0.0.1:8443").size(), 1U);
}

TEST_P(CrowdTest, TheQueueOfAHostIsServedCompletely) {
  oweMany("j", 300, "http://h/");
  open();
  ASSERT_TRUE(until([&] { return net_->seen().size() == 300; }));
  ASSERT_TRUE(quiet());
  EXPECT_EQ(net_->seen().size(), 300U) << "each once";
  EXPECT_LE(net_->mostAtOneHost(), kPlacesPerHost);
  EXPECT_LE(outbox_->mostAtOnce(), 64U) << "a large claim delays other steps";
  for (const Delivery& each : inner_->outbox().list("ep", "", 1'000)) {
    EXPECT_EQ(each.state, DeliveryState::delivered);
    EXPECT_EQ(each.attempts.size(), 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(Over, CrowdTest, testing::Values("memory", "sqlite"), nameOfStorage);

}  // namespace
}  // namespace jobq

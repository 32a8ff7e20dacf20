// Tests of the passes of the WebhookDispatcher over the outbox, with an outbox that records each call
// (core/webhooks/dispatcher.h).
#include "core/webhooks/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <new>
#include <string>

#include "delivery_task_fixture.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DeliveryUnit : public testing::Test, protected test::DeliveryTaskFixture {
 protected:
  bool hasMadePasses(std::size_t passes) {
    return holdsSoon([&] { return outbox.passes() >= passes; });
  }
  /// Waits until the scheduler waits for the moment in `length` and no other work is under way.
  void awaitRest(Millis length) { storage.clock.awaitWaiter(length, length); }

  std::atomic<int> hookCalls_ = 0;  // calls by the hook of the outbox, which the dispatcher calls until the end
  WebhookDispatcher webhooks_{deps()};
};

TEST_F(DeliveryUnit, AStartFindsTheOwedDeliveriesOfAFormerProcess) {
  outbox.owe(deliveryTo("http://h/x"));
  webhooks_.start();
  ASSERT_TRUE(holdsSoon([this] { return outbox.calls().size() == 2; })) << "the delivery was not settled";
  EXPECT_THAT(outbox.calls(), ElementsAre("record a.1 200", "finish a.1 delivered"));
}

TEST_F(DeliveryUnit, ANotificationLeadsToAPassAtOnce) {
  webhooks_.start();
  ASSERT_TRUE(hasMadePasses(1));
  awaitRest(Millis(1'000));
  outbox.owe(deliveryTo("http://h/x"));
  webhooks_.notify();
  ASSERT_TRUE(holdsSoon([this] { return outbox.calls().size() == 2; })) << "no time passes here";
}

TEST_F(DeliveryUnit, WithoutANotificationAPassComesOnceASecond) {
  webhooks_.start();
  ASSERT_TRUE(hasMadePasses(1));
  awaitRest(Millis(1'000));
  const std::size_t before = outbox.passes();
  storage.clock.advance(Millis(999));
  awaitRest(Millis(1));
  EXPECT_EQ(outbox.passes(), before);
  storage.clock.advance(Millis(1));
  EXPECT_TRUE(hasMadePasses(before + 1));
}

// Receivers that answer at once free places all the time: a pass that continued until an empty claim would not end.
TEST_F(DeliveryUnit, APassIsARoundOfClaimsAndAnEqualPause) {
  outbox.before = [this](const std::string& call) {
    if (call != "pass" || hookCalls_ == 3) return;
    storage.clock.advance(Millis(10));
    const std::string name = "j" + std::to_string(++hookCalls_);
    outbox.owe(deliveryTo("http://" + name + "/", name));
  };
  webhooks_.start();
  for (std::size_t pass = 1; pass <= 3; ++pass) {
    awaitRest(Millis(10));
    EXPECT_EQ(outbox.passes(), pass);
    storage.clock.advance(Millis(10));
  }
  EXPECT_TRUE(holdsSoon([this] { return outbox.calls().size() == 6; })) << "a delivery was not settled";
}

TEST_F(DeliveryUnit, AFailedCallIsTriedAgainWhenDue) {
  net->script("h", {FakeTransport::failing(500)});
  outbox.owe(deliveryTo("http://h/x"));
  // An end of the call within the first pass would cause no third pass, because the claim causes the second one.
  outbox.before = [this](const std::string& call) {
    if (!call.starts_with("reschedule")) return;
    EXPECT_TRUE(hasMadePasses(2));
  };
  webhooks_.start();
  // The third pass follows the end of the call: the dispatcher then knows of the retry.
  ASSERT_TRUE(hasMadePasses(3));
  EXPECT_THAT(outbox.calls(), Contains("reschedule a.1 10000"));
  for (int second = 0; second < 9; ++second) {
    awaitRest(Millis(1'000));
    storage.clock.advance(Millis(1'000));
  }
  awaitRest(Millis(1'000));
  storage.clock.advance(Millis(999));
  awaitRest(Millis(1));
  const std::size_t before = outbox.passes();
  storage.clock.advance(Millis(1));
  EXPECT_TRUE(hasMadePasses(before + 1));
}

TEST_F(DeliveryUnit, AfterAnyExceptionOfTheStorageItIsAskedAgainInHalfASecond) {
  outbox.before = [this](const std::string& call) {
    if (call != "pass" || hookCalls_ >= 2) return;
    if (++hookCalls_ == 1) throw StorageError("locked");
    throw std::bad_alloc();
  };
  outbox.owe(deliveryTo("http://h/x"));
  webhooks_.start();
  for (int look = 1; look <= 2; ++look) {
    awaitRest(Millis(500));
    EXPECT_EQ(hookCalls_, look);
    storage.clock.advance(Millis(500));
  }
  ASSERT_TRUE(holdsSoon([this] { return outbox.calls().size() == 2; })) << "the delivery was not settled";
  EXPECT_THAT(storage.log.lines(), Contains(HasSubstr("webhook.dispatch: locked")));
}

TEST_F(DeliveryUnit, AStopCutsACallOffAndTheDeliveryIsDueAtOnce) {
  net->hang("h");
  outbox.owe(deliveryTo("http://h/x"));
  webhooks_.start();
  ASSERT_TRUE(holdsSoon([this] { return net->running() == 1; })) << "the call did not begin";
  auto stopping = std::async(std::launch::async, [this] { webhooks_.stop(); });
  ASSERT_EQ(stopping.wait_for(test::kSoon), std::future_status::ready) << "the stop did not end";
  EXPECT_THAT(outbox.calls(), ElementsAre("reschedule a.1 0"));
}

TEST_F(DeliveryUnit, AHangingHostDelaysNoOtherHost) {
  net->hang("slow");
  for (int i = 0; i < 9; ++i) outbox.owe(deliveryTo("http://slow/", "s" + std::to_string(i)));
  webhooks_.start();
  ASSERT_TRUE(holdsSoon([this] { return net->running() == 1; })) << "no call began";
  outbox.owe(deliveryTo("http://quick/"));
  webhooks_.notify();
  ASSERT_TRUE(holdsSoon([this] { return outbox.calls().size() == 2; })) << "the other host had to wait";
  EXPECT_EQ(net->running(), 1U) << "a hanging host has a single place";
}

TEST_F(DeliveryUnit, AnAnsweringHostHasMoreAndMorePlaces) {
  net->hang("h");
  for (int i = 0; i < 9; ++i) outbox.owe(deliveryTo("http://h/", "j" + std::to_string(i)));
  webhooks_.start();
  for (std::size_t running = 1; running <= 4; ++running) {
    ASSERT_TRUE(holdsSoon([&] { return net->running() == running; })) << "not " << running << " calls at once";
    net->letOneGo("h");  // one call ends, two calls begin
  }
  ASSERT_TRUE(holdsSoon([this] { return net->running() == 5; })) << "the last of nine did not begin";
}

TEST_F(DeliveryUnit, NoDeliveryIsClaimedBeforeAStartOrAfterAStop) {
  outbox.owe(deliveryTo("http://h/x"));
  webhooks_.notify();
  EXPECT_EQ(outbox.passes(), 0U);
  webhooks_.stop();
  webhooks_.start();
  webhooks_.notify();
  webhooks_.stop();
  EXPECT_EQ(outbox.passes(), 0U);
  EXPECT_THAT(outbox.calls(), IsEmpty());
}

}  // namespace
}  // namespace jobq

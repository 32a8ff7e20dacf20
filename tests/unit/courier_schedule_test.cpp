// When the courier looks for owed webhooks, over an outbox that keeps each call (core/webhooks/courier.h).
#include "core/webhooks/courier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <new>

#include "errand_world.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CourierUnit : public testing::Test, protected test::ErrandWorld {
 protected:
  bool looked(std::size_t looks) {
    return holdsSoon([&] { return outbox.looks() >= looks; });
  }
  /// The scheduler waits for the moment in so many milliseconds, and nothing else is under way.
  void awaitRest(Millis length) { storage.clock.awaitWaiter(length, length); }

  Courier courier_{rooms()};
};

TEST_F(CourierUnit, AStartFindsWhatAFormerProcessOwed) {
  outbox.owe(deliveryTo("http://h/x"));
  courier_.start();
  ASSERT_TRUE(holdsSoon([this] { return outbox.calls().size() == 2; })) << "the delivery was not settled";
  EXPECT_THAT(outbox.calls(), ElementsAre("record a.1 200", "settle a.1 delivered"));
}

TEST_F(CourierUnit, ARingLeadsToALookAtOnce) {
  courier_.start();
  ASSERT_TRUE(looked(1));
  awaitRest(Millis(1'000));
  outbox.owe(deliveryTo("http://h/x"));
  courier_.ring();
  ASSERT_TRUE(holdsSoon([this] { return outbox.calls().size() == 2; })) << "no time passes here";
}

TEST_F(CourierUnit, WithoutARingItLooksOnceASecond) {
  courier_.start();
  ASSERT_TRUE(looked(1));
  awaitRest(Millis(1'000));
  const std::size_t before = outbox.looks();
  storage.clock.advance(Millis(999));
  awaitRest(Millis(1));
  EXPECT_EQ(outbox.looks(), before);
  storage.clock.advance(Millis(1));
  EXPECT_TRUE(looked(before + 1));
}

TEST_F(CourierUnit, AFailedCallIsTriedAgainWhenItIsDue) {
  net->script("h", {FakeTransport::failing(500)});
  outbox.owe(deliveryTo("http://h/x"));
  courier_.start();
  // The third look follows the end of the call: from then on the courier knows of the retry.
  ASSERT_TRUE(looked(3));
  EXPECT_THAT(outbox.calls(), Contains("reschedule a.1 10000"));
  for (int second = 0; second < 9; ++second) {
    awaitRest(Millis(1'000));
    storage.clock.advance(Millis(1'000));
  }
  awaitRest(Millis(1'000));
  storage.clock.advance(Millis(999));
  awaitRest(Millis(1));
  const std::size_t before = outbox.looks();
  storage.clock.advance(Millis(1));
  EXPECT_TRUE(looked(before + 1));
}

TEST_F(CourierUnit, WhateverTheStorageThrowsItLooksAgainInHalfASecond) {
  std::atomic<int> failures = 0;
  outbox.before = [&failures](const std::string& call) {
    if (call != "look" || failures >= 2) return;
    if (++failures == 1) throw StorageError("locked");
    throw std::bad_alloc();
  };
  outbox.owe(deliveryTo("http://h/x"));
  courier_.start();
  for (int look = 1; look <= 2; ++look) {
    awaitRest(Millis(500));
    EXPECT_EQ(failures, look);
    storage.clock.advance(Millis(500));
  }
  ASSERT_TRUE(holdsSoon([this] { return outbox.calls().size() == 2; })) << "the delivery was not settled";
  EXPECT_THAT(storage.log.lines(), Contains(HasSubstr("courier.storage: locked")));
}

TEST_F(CourierUnit, AStopCutsACallOffAndItsDeliveryIsDueAtOnce) {
  net->hang("h");
  outbox.owe(deliveryTo("http://h/x"));
  courier_.start();
  ASSERT_TRUE(holdsSoon([this] { return net->running() == 1; })) << "the call did not begin";
  auto stopping = std::async(std::launch::async, [this] { courier_.stop(); });
  ASSERT_EQ(stopping.wait_for(test::kSoon), std::future_status::ready) << "the stop did not end";
  EXPECT_THAT(outbox.calls(), ElementsAre("reschedule a.1 0"));
}

TEST_F(CourierUnit, AHostThatHangsDelaysNoOtherOne) {
  net->hang("slow");
  for (int i = 0; i < 9; ++i) outbox.owe(deliveryTo("http://slow/", "s" + std::to_string(i)));
  courier_.start();
  ASSERT_TRUE(holdsSoon([this] { return net->running() == 1; })) << "no call began";
  outbox.owe(deliveryTo("http://quick/"));
  courier_.ring();
  ASSERT_TRUE(holdsSoon([this] { return outbox.calls().size() == 2; })) << "the other host had to wait";
  EXPECT_EQ(net->running(), 1U) << "it has one place until it answers";
}

TEST_F(CourierUnit, AHostThatAnswersHasMoreAndMorePlaces) {
  net->hang("h");
  for (int i = 0; i < 9; ++i) outbox.owe(deliveryTo("http://h/", "j" + std::to_string(i)));
  courier_.start();
  for (std::size_t running = 1; running <= 4; ++running) {
    ASSERT_TRUE(holdsSoon([&] { return net->running() == running; })) << "not " << running << " calls at once";
    net->letOneGo("h");  // one ends, two begin
  }
  ASSERT_TRUE(holdsSoon([this] { return net->running() == 5; })) << "the last of nine did not begin";
}

TEST_F(CourierUnit, BeforeAStartAndAfterAStopNothingIsClaimed) {
  outbox.owe(deliveryTo("http://h/x"));
  courier_.ring();
  EXPECT_EQ(outbox.looks(), 0U);
  courier_.stop();
  courier_.start();
  courier_.ring();
  courier_.stop();
  EXPECT_EQ(outbox.looks(), 0U);
  EXPECT_THAT(outbox.calls(), IsEmpty());
}

}  // namespace
}  // namespace jobq

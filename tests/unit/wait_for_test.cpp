// Tests of the bounded waits of the testkit: their results, and the message after a passed deadline.
#include "testkit/wait_for.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "testkit/manual_clock.h"
#include "testkit/run_together.h"

namespace jobq::testkit {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(WaitFor, PollsUntilTheConditionHolds) {
  int looks = 0;
  waitFor("three looks", [&looks] { return ++looks == 3; });
  EXPECT_EQ(looks, 3);
}

TEST(WaitFor, NamesTheAwaitedCondition) {
  EXPECT_THAT(
      [] {
        waitFor(
            "the moon to fall", [] { return false; }, seconds(0));
      },
      ThrowsMessage<WaitExpired>("waited 0 s for the moon to fall"));
}

TEST(WaitDeadline, EndsAWaitForANotification) {
  Mutex mutex;
  Condition never;
  const Lock lock(mutex);
  EXPECT_THROW(for (WaitDeadline wait("a notification", seconds(0));;) wait.on(never, mutex), WaitExpired);
}

TEST(ResultOf, PassesValuesAndExceptionsOn) {
  auto seven = std::async(std::launch::async, [] { return 7; });
  EXPECT_EQ(resultOf("seven", seven), 7);
  auto broken = std::async(std::launch::async, []() -> int { throw std::runtime_error("broken"); });
  EXPECT_THROW(resultOf("an exception", broken), std::runtime_error);
}

TEST(HangGuardDeathTest, EndsTheHangingProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::promise<int> never;
        auto result = never.get_future();
        resultOf("a promise that is not kept", result, seconds(0));
      },
      "waited 0 s for a promise that is not kept");
}

TEST(RunTogether, RunsEachOnce) {
  std::vector<int> ran(16);
  runTogether(16, [&ran](int i) { ++ran[static_cast<std::size_t>(i)]; });
  EXPECT_EQ(ran, std::vector<int>(16, 1));
}

TEST(ManualClockTest, NamesTheCurrentWaits) {
  ManualClock clock;
  Mutex mutex;
  Condition changed;
  bool isOver = false;
  std::thread waiter([&] {
    Lock lock(mutex);
    while (!isOver) clock.waitUntil(mutex, changed, clock.now() + Millis(7'000));
  });
  clock.awaitWaiter(Millis(7'000), Millis(7'000));
  EXPECT_THAT([&clock] { clock.awaitWaiter(Millis(1), Millis(2), 1, seconds(0)); },
              ThrowsMessage<WaitExpired>(AllOf(HasSubstr("1 waits that end in 1 to 2 ms"), HasSubstr("in 7000 ms"))));
  {
    const Lock lock(mutex);
    isOver = true;
  }
  changed.notifyAll();
  join("the waiter", waiter);
}

// A clock of the system wakes in the same way. A thread that waits for too long would be awake for another reason.
TEST(ManualClockTest, WakesOnlyAnExpiredWait) {
  ManualClock clock;
  Mutex mutex;
  Condition changed;
  int wakes = 0;
  const Instant end = clock.now() + Millis(5'000);
  std::thread waiter([&] {
    Lock lock(mutex);
    for (; clock.now() < end; ++wakes) clock.waitUntil(mutex, changed, end);
  });
  clock.awaitWaiter(Millis(5'000), Millis(5'000));
  for (int i = 0; i < 5; ++i) clock.advance(Millis(1'000));
  join("the waiter", waiter);
  EXPECT_EQ(wakes, 1);
}

}  // namespace
}  // namespace jobq::testkit

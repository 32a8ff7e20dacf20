// Tests of the timer of execution timeouts (core/workers/run/deadline_timer.h) on a clock moved by hand.
#include "core/workers/run/deadline_timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "tests/support/fakes.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class DeadlineTimerTest : public testing::Test {
 protected:
  DeadlineTimerTest() { timer_.start(); }

  std::unique_ptr<DeadlineTimer::Entry> job(Millis left) {
    return std::make_unique<DeadlineTimer::Entry>(timer_, clock_.now() + left);
  }
  std::vector<Instant> calls() {
    Lock lock(mutex_);
    return calls_;
  }
  bool wasCalled(std::size_t times) {
    return holdsSoon([&] { return calls().size() >= times; });
  }

  testkit::ManualClock clock_;
  testkit::RecordingLog log_;
  const Instant start_ = clock_.now();
  std::atomic<bool> failing_ = false;
  Mutex mutex_;
  std::vector<Instant> calls_ JOBQ_GUARDED_BY(mutex_);
  test::CallingOverdueJobs overdue_{[this] {
    Lock lock(mutex_);
    calls_.push_back(clock_.now());
    if (failing_) throw std::runtime_error("no storage");
  }};
  DeadlineTimer timer_{clock_, log_, overdue_};
};

TEST_F(DeadlineTimerTest, ADeadlineIsActedUponInTheSameMillisecond) {
  const auto one = job(Millis(5'000));
  clock_.awaitWaiter(Millis(5'000), Millis(5'000));
  clock_.advance(Millis(4'999));
  clock_.awaitWaiter(Millis(1), Millis(1));
  clock_.advance(Millis(1));
  ASSERT_TRUE(wasCalled(1));
  EXPECT_THAT(calls(), ElementsAre(start_ + Millis(5'000)));
}

TEST_F(DeadlineTimerTest, AnEarlierDeadlineWakesTheTimer) {
  const auto late = job(Millis(600'000));
  clock_.awaitWaiter(Millis(600'000), Millis(600'000));
  const auto early = job(Millis(5'000));
  clock_.awaitWaiter(Millis(5'000), Millis(5'000));
  clock_.advance(Millis(5'000));
  ASSERT_TRUE(wasCalled(1));
  clock_.awaitWaiter(Millis(595'000), Millis(595'000));
}

TEST_F(DeadlineTimerTest, AJobEndedInTimeIsForgotten) {
  auto ended = job(Millis(5'000));
  clock_.awaitWaiter(Millis(5'000), Millis(5'000));
  ended.reset();
  const auto other = job(Millis(7'000));
  clock_.advance(Millis(5'000));
  clock_.awaitWaiter(Millis(2'000), Millis(2'000));
  EXPECT_THAT(calls(), ElementsAre());
}

TEST_F(DeadlineTimerTest, AContinuingHandlerIsCountedOnceAndNeighboursShareACall) {
  const auto stubborn = job(Millis(5'000));
  const auto same = job(Millis(5'000));
  const auto next = job(Millis(5'001));
  const auto last = job(Millis(5'003));
  clock_.awaitWaiter(Millis(5'000), Millis(5'000));
  clock_.advance(Millis(5'000));
  ASSERT_TRUE(wasCalled(1));
  clock_.awaitWaiter(Millis(10), Millis(10));
  clock_.advance(Millis(10));
  ASSERT_TRUE(wasCalled(2));
  clock_.awaitWaiter(Millis(1'000'000), Instant::max() - clock_.now());
  EXPECT_THAT(calls(), ElementsAre(start_ + Millis(5'000), start_ + Millis(5'010)));
}

TEST_F(DeadlineTimerTest, AFailureIsLoggedAndTheNextDeadlineComes) {
  failing_ = true;
  const auto one = job(Millis(5'000));
  const auto two = job(Millis(6'000));
  clock_.awaitWaiter(Millis(5'000), Millis(5'000));
  clock_.advance(Millis(5'000));
  clock_.awaitWaiter(Millis(1'000), Millis(1'000));
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("no storage")));
  clock_.advance(Millis(1'000));
  EXPECT_TRUE(wasCalled(2));
}

}  // namespace
}  // namespace jobq

// Tests of the server's clocks, and of the forced end of a shutdown that hangs (core/base).
#include "core/base/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/base/logger.h"
#include "core/process/clock_keeper.h"
#include "core/process/shutdown_deadline.h"
#include "set_time.h"
#include "testkit/recording_log.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

TEST(Clock, TimesAreReadAndPrinted) {
  const auto time = fromIso8601("2027-01-02T03:04:05Z");
  ASSERT_TRUE(time);
  EXPECT_EQ(toIso8601(*time), "2027-01-02T03:04:05.000Z");
  EXPECT_EQ(toIso8601(*fromIso8601("2027-01-02T03:04:05.678Z")), "2027-01-02T03:04:05.678Z");
  for (const char* bad : {"", "2027-01-02", "2027-01-02T03:04:05", "2027-01-02T03:04:05+01:00", "tomorrow"}) {
    EXPECT_FALSE(fromIso8601(bad)) << bad;
  }
}

TEST(SystemClock, FollowsTheMachinesTimeForwardsByATenth) {
  using std::chrono::hours;
  using std::chrono::seconds;
  test::SetTime machine;
  SystemClock clock(machine);
  const Instant start = clock.now();
  machine.pass(seconds(10));
  EXPECT_EQ(clock.follow(), Millis(0));
  EXPECT_EQ(clock.now() - start, seconds(10));

  machine.wall_ += hours(1);
  EXPECT_EQ(clock.now() - start, seconds(10)) << "running jobs do not time out";
  for (int i = 0; i < 10; ++i) {
    machine.pass(seconds(10));
    EXPECT_EQ(clock.follow(), Millis(3'600'000 - i * 1'000));
  }
  EXPECT_EQ(clock.now() - start, seconds(10 + 100 + 10));
  for (int i = 0; i < 4'000; ++i) {
    machine.pass(seconds(10));
    clock.follow();
  }
  EXPECT_EQ(clock.now(), std::chrono::floor<Millis>(machine.wall_));

  const Instant before = clock.now();
  machine.wall_ -= hours(2);
  machine.pass(seconds(100));
  EXPECT_EQ(clock.follow(), Millis(-7'200'000));
  EXPECT_EQ(clock.now() - before, seconds(100)) << "the clock never goes back";
}

TEST(SystemClock, ALateStepCatchesUpByASecondAtMost) {
  using std::chrono::hours;
  using std::chrono::seconds;
  test::SetTime machine;
  SystemClock clock(machine);
  machine.wall_ += hours(1);
  machine.pass(hours(1));
  const Instant before = clock.now();
  EXPECT_EQ(clock.follow(), Millis(3'600'000));
  EXPECT_EQ(clock.now() - before, seconds(1)) << "leases do not end by a jump of six minutes";
}

TEST(SystemClock, AServiceOfTheMachineKnowsTheLead) {
  using std::chrono::hours;
  test::SetTime machine;
  SystemClock clock(machine);
  EXPECT_EQ(clock.lead(), Millis(0));
  machine.wall_ -= hours(2);
  EXPECT_EQ(clock.lead(), Millis(7'200'000));
  machine.isSynchronised_ = false;
  EXPECT_EQ(clock.lead(), std::nullopt);
}

TEST(ClockKeeper, WarnsOnceWhenTheTimesDifferByAMinute) {
  using std::chrono::seconds;
  test::SetTime machine;
  SystemClock clock(machine);
  testkit::RecordingLog log;
  ClockKeeper keeper(clock, log);
  machine.wall_ += seconds(59);
  keeper.step();
  EXPECT_THAT(log.lines(), testing::IsEmpty());
  machine.wall_ += seconds(3'541);
  keeper.step();
  keeper.step();
  EXPECT_THAT(log.lines(), testing::ElementsAre(testing::HasSubstr("3600 s ahead")));
  machine.wall_ -= seconds(3'600);
  keeper.step();
  machine.wall_ -= seconds(60);
  keeper.step();
  EXPECT_THAT(log.lines(), testing::ElementsAre(testing::_, testing::HasSubstr("60 s behind")));
}

TEST(ShutdownDeadline, EndsAProcessWithAHangingStep) {
  const auto step = [](Millis limit, std::chrono::seconds time) {
    Logger log(LogLevel::information, LogFormat::text);
    {
      const ShutdownDeadline deadline(limit, "a transport ignores its stop token", log);
      std::this_thread::sleep_for(time);
    }
    _exit(1);
  };
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(step(Millis(10), testkit::kHangDeadline), testing::ExitedWithCode(0),
              "server.stuck: a transport ignores");
  EXPECT_EXIT(step(testkit::kHangDeadline, std::chrono::seconds(0)), testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace jobq

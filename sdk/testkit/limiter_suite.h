// The conformance suite of rate limiters: tests for each rule of sdk/include/jobq/rate_limiter.h that holds for a
// sliding window and for a bucket alike. The test of a limiter is a few lines:
//
//     #include "testkit/limiter_suite.h"
//     JOBQ_LIMITER_CONFORMANCE(Mine, testing::Values(jobq::testkit::LimiterUnderTest{
//         "mine", [] { return makeMine(); }}));
//
// A single source file of a test program includes the header. Time is an argument, and no test sleeps.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "jobq/rate_limiter.h"
#include "jobq/time.h"
#include "testkit/run_together.h"

namespace jobq::testkit {

/// A limiter for the suite.
struct LimiterUnderTest {
  std::string name;
  std::function<std::unique_ptr<RateLimiter>()> make;  ///< returns a new limiter without any counted request
};

inline std::ostream& operator<<(std::ostream& out, const LimiterUnderTest& under) { return out << under.name; }

/// Fixture of the suite: a new limiter for each test, and short forms of its operations.
class LimiterSuite : public testing::TestWithParam<LimiterUnderTest> {
 protected:
  static constexpr int kThreads = 16;
  static constexpr Instant kStart = fromEpochMillis(1'767'225'600'000);  // 2026-01-01T00:00:00Z

  static RateLimit rate(std::uint32_t requests, Millis window = Millis(10'000)) { return {requests, window, 0}; }
  static RateLimit places(std::uint32_t concurrent) { return {0, Millis(10'000), concurrent}; }

  RateVerdict enter(const RateLimit& limit, Millis at = Millis(0), std::string_view key = "ep/run") {
    return limiter_->enter(key, limit, kStart + at);
  }
  void leave(std::string_view key = "ep/run") { limiter_->leave(key); }

  /// Returns how many of `tries` requests are admitted; each admitted call leaves at once.
  std::uint32_t pass(std::uint32_t tries, const RateLimit& limit, Millis at = Millis(0),
                     std::string_view key = "ep/run") {
    std::uint32_t passed = 0;
    for (std::uint32_t i = 0; i < tries; ++i) {
      if (!enter(limit, at, key).allowed) continue;
      ++passed;
      leave(key);
    }
    return passed;
  }

  /// Expects a refusal at `at` with an exact retryAfter: a request a millisecond earlier is refused, a request at the
  /// named moment is admitted. Returns the named moment. No other thread may call, and one more request is counted.
  Millis expectExactRetry(const RateLimit& limit, Millis at) {
    const RateVerdict refused = enter(limit, at);
    EXPECT_FALSE(refused.allowed);
    EXPECT_GE(refused.retryAfter, Millis(1));
    EXPECT_EQ(refused.remaining, 0U);
    const Millis then = at + refused.retryAfter;
    const RateVerdict early = enter(limit, then - Millis(1));
    EXPECT_FALSE(early.allowed) << "a millisecond early";
    EXPECT_EQ(early.retryAfter, Millis(1));
    EXPECT_EQ(pass(1, limit, then), 1U) << "at " << then.count() << " ms, the time of the first refusal";
    return then;
  }

  /// Runs `body(i)` on all threads, which start together.
  static void together(const std::function<void(int)>& body) { runTogether(kThreads, body); }

  std::unique_ptr<RateLimiter> limiter_ = GetParam().make();
};

TEST_P(LimiterSuite, AllRequestsMayComeAtOnceAndNoMore) {
  for (std::uint32_t left = 5; left > 0; --left) {
    const RateVerdict verdict = enter(rate(5));
    EXPECT_TRUE(verdict.allowed);
    EXPECT_EQ(verdict.remaining, left - 1);
    EXPECT_EQ(verdict.retryAfter, Millis(0));
    leave();
  }
  const RateVerdict refused = enter(rate(5));
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.remaining, 0U);
  EXPECT_GT(refused.retryAfter, Millis(0));
  EXPECT_LE(refused.retryAfter, Millis(10'000));
}

TEST_P(LimiterSuite, RetryAfterARateIsExact) {
  for (const std::uint32_t requests : {1U, 3U, 7U, 1'000U, 15'000U}) {
    for (const Millis window : {Millis(1), Millis(10), Millis(9'999), Millis(10'000)}) {
      limiter_ = GetParam().make();
      const RateLimit limit = rate(requests, window);
      EXPECT_EQ(pass(requests, limit), requests);
      Millis at{0};
      for (int i = 0; i < 5 && !enter(limit, at).allowed; ++i) at = expectExactRetry(limit, at);
      EXPECT_GT(at, Millis(0)) << requests << " within " << window.count() << " ms";
    }
  }
}

TEST_P(LimiterSuite, ARefusedRequestIsNotCounted) {
  EXPECT_EQ(pass(3, rate(3)), 3U);
  const RateVerdict first = enter(rate(3));
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(enter(rate(3)).retryAfter, first.retryAfter);
  EXPECT_EQ(pass(4, rate(3), Millis(10'000)), 3U);
}

TEST_P(LimiterSuite, AWindowOfSilenceGivesAllBack) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(pass(8, rate(7), Millis(10'000 * i)), 7U);
}

TEST_P(LimiterSuite, AGreedyKeyGetsTheRateAndNoMore) {
  constexpr std::uint32_t kWindows = 50;
  std::uint32_t passed = 0;
  for (std::uint32_t ms = 0; ms < 100 * kWindows; ++ms) passed += pass(2, rate(30, Millis(100)), Millis(ms));
  EXPECT_GE(passed, 30 * kWindows) << "a caller waits no longer than the rate requires";
  EXPECT_LE(passed, 30 * (kWindows + 1)) << "a bucket starts full";
}

TEST_P(LimiterSuite, NeverOverTheConcurrency) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(enter(places(4)).allowed);
  for (int i = 0; i < 10; ++i) {
    const RateVerdict refused = enter(places(4), Millis(i * 3'600'000));
    EXPECT_FALSE(refused.allowed) << "no time frees a place";
    EXPECT_EQ(refused.retryAfter, Millis(1'000));
    EXPECT_EQ(refused.remaining, 0U);
  }
}

TEST_P(LimiterSuite, LeaveFreesOnePlace) {
  EXPECT_TRUE(enter(places(2)).allowed);
  EXPECT_TRUE(enter(places(2)).allowed);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(enter(places(2)).allowed);
    leave();
    EXPECT_TRUE(enter(places(2)).allowed);
  }
}

TEST_P(LimiterSuite, ARequestRefusedForConcurrencyIsNotCounted) {
  const RateLimit both{3, Millis(10'000), 1};
  EXPECT_EQ(enter(both).remaining, 2U);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(enter(both).allowed);
  leave();
  EXPECT_EQ(enter(both).remaining, 1U);
}

TEST_P(LimiterSuite, ARequestRefusedByRateHoldsNoPlace) {
  const RateLimit both{2, Millis(10'000), 3};
  EXPECT_EQ(pass(2, both), 2U);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(enter(both).allowed);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(enter(places(3)).allowed);
  EXPECT_FALSE(enter(places(3)).allowed);
}

TEST_P(LimiterSuite, TheRateNamesTheMomentWhenBothRefuse) {
  const RateLimit both{1, Millis(10'000), 1};
  EXPECT_TRUE(enter(both).allowed);
  EXPECT_EQ(enter(both, Millis(4'000)).retryAfter, Millis(6'000));
  EXPECT_EQ(enter(both, Millis(9'999)).retryAfter, Millis(1));
  EXPECT_EQ(enter(both, Millis(10'000)).retryAfter, Millis(1'000)) << "only a place is missing";
}

TEST_P(LimiterSuite, KeysDoNotInfluenceEachOther) {
  const RateLimit both{2, Millis(10'000), 2};
  for (int i = 0; i < 1'000; ++i) {
    const std::string key = "ep" + std::to_string(i) + "/run";
    EXPECT_TRUE(enter(both, Millis(i), key).allowed);
    EXPECT_EQ(enter(both, Millis(i), key).remaining, 0U);
    EXPECT_FALSE(enter(both, Millis(i), key).allowed);
  }
  for (int i = 0; i < 1'000; ++i) {
    leave("ep" + std::to_string(i) + "/run");
    EXPECT_FALSE(enter(places(1), Millis(1'000), "ep" + std::to_string(i) + "/run").allowed)
        << "the second caller is still inside";
  }
}

TEST_P(LimiterSuite, ARuleWithoutLimitsAdmitsEveryRequest) {
  for (int i = 0; i < 10'000; ++i) {
    const RateVerdict verdict = enter(RateLimit{});
    EXPECT_TRUE(verdict.allowed);
    EXPECT_EQ(verdict.remaining, 0U);
    EXPECT_EQ(verdict.retryAfter, Millis(0));
  }
  EXPECT_EQ(enter(rate(3)).remaining, 2U) << "calls without a rate limit were not counted";
  EXPECT_FALSE(enter(places(10'001)).allowed) << "calls without a limit of places take a place";
  leave();
  EXPECT_TRUE(enter(places(10'001)).allowed);
}

TEST_P(LimiterSuite, AGrowingRateHasRoomAtOnce) {
  EXPECT_EQ(pass(11, rate(10)), 10U);
  EXPECT_EQ(enter(rate(25)).remaining, 14U) << "the ten stay counted";
  EXPECT_EQ(pass(20, rate(25)), 14U);
  (void)expectExactRetry(rate(25), Millis(0));
}

TEST_P(LimiterSuite, AShrinkingRateRemembersCountedRequests) {
  EXPECT_EQ(pass(30, rate(30)), 30U);
  EXPECT_EQ(pass(1, rate(3), Millis(1)), 0U);
  EXPECT_EQ(pass(1, rate(30), Millis(1)), 0U) << "the smaller rate forgets no counted call";
  (void)expectExactRetry(rate(3), Millis(1));
  EXPECT_EQ(pass(4, rate(3), Millis(1'000'000)), 3U);
}

TEST_P(LimiterSuite, FewerPlacesWaitUntilEnoughHaveLeft) {
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(enter(places(8)).allowed);
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(enter(places(3)).allowed) << i << " have left";
    leave();
  }
  EXPECT_TRUE(enter(places(3)).allowed);
  EXPECT_FALSE(enter(places(3)).allowed);
  EXPECT_TRUE(enter(places(4)).allowed) << "a larger limit has free places at once";
}

TEST_P(LimiterSuite, ALateInstantCountsAsTheNewest) {
  const RateLimit limit = rate(4);
  EXPECT_EQ(pass(4, limit), 4U);
  EXPECT_EQ(enter(limit, Millis(10'000)).remaining, 3U);
  EXPECT_EQ(enter(limit, Millis(9'000)).remaining, 2U) << "the instant counts as 10 s, not as 9 s";
  EXPECT_EQ(pass(3, limit, Millis(9'500)), 2U);
  const RateVerdict late = enter(limit, Millis(0));
  EXPECT_FALSE(late.allowed);
  EXPECT_EQ(late.retryAfter, enter(limit, Millis(10'000)).retryAfter);
  EXPECT_EQ(expectExactRetry(limit, Millis(10'000)), Millis(10'000) + late.retryAfter);
}

TEST_P(LimiterSuite, ThreadsAtOneKeyGetExactlyTheRate) {
  for (int round = 0; round < 5; ++round) {
    std::atomic<std::uint32_t> passed = 0;
    together([&](int) { passed += pass(10'000, rate(100'000), Millis(round * 10'000)); });
    EXPECT_EQ(passed, 100'000U);
  }
}

TEST_P(LimiterSuite, ThreadsAtOneKeyAreNeverTooManyAndNoPlaceIsLost) {
  constexpr int kPlaces = 5;
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<int> passed = 0;
  together([&](int) {
    for (int i = 0; i < 20'000; ++i) {
      if (!enter(places(kPlaces)).allowed) continue;
      const int now = ++inside;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
      if (i % 16 == 0) std::this_thread::yield();
      ++passed;
      --inside;
      leave();
    }
  });
  EXPECT_LE(most, kPlaces);
  EXPECT_GT(passed, 0);
  for (int i = 0; i < kPlaces; ++i) EXPECT_TRUE(enter(places(kPlaces)).allowed) << i;
  EXPECT_FALSE(enter(places(kPlaces)).allowed);
}

TEST_P(LimiterSuite, ThreadsWithRacingClocksGetTheRateAndNoMore) {
  constexpr std::uint32_t kWindows = 20;
  const RateLimit limit{40, Millis(100), 0};
  std::atomic<int> tick = 0;
  std::atomic<std::uint32_t> passed = 0;
  together([&](int) {
    // Three tries a millisecond, of which forty a window may pass. Between the read of the tick and the request, other
    // threads go on.
    for (int at = tick++; at < static_cast<int>(300 * kWindows); at = tick++) passed += pass(1, limit, Millis(at / 3));
  });
  EXPECT_LE(passed, 40 * (kWindows + 1));
  EXPECT_GE(passed, 30 * kWindows) << "at most fifteen calls run at a time, so few are missed";
}

}  // namespace jobq::testkit

/// Runs the suite against limiters: `JOBQ_LIMITER_CONFORMANCE(Mine, testing::Values(...))`, once, at namespace scope.
#define JOBQ_LIMITER_CONFORMANCE(prefix, limiters)                                                                   \
  namespace jobq::testkit {                                                                                          \
  inline std::string nameOfLimiter(const testing::TestParamInfo<LimiterUnderTest>& info) { return info.param.name; } \
  INSTANTIATE_TEST_SUITE_P(prefix, LimiterSuite, limiters, nameOfLimiter);                                           \
  }                                                                                                                  \
  static_assert(true)

// Both limiters in the tree under the limiter suite, and tests of each limiter's properties beyond the suite. The
// libraries are the plugins loaded by the server.
#include <atomic>
#include <cstdlib>
#include <new>

#include "testkit/limiter_suite.h"
#include "testkit/loaded_plugin.h"

namespace {
std::atomic<std::int64_t> liveAllocations = 0;
}

// Counts every allocation of the program and of the loaded libraries. Inlined, the functions would look to GCC like
// malloc paired with delete. The runtime of clang's ThreadSanitizer defines the functions, too.
#if !JOBQ_SANITIZED_THREADS
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  ++liveAllocations;
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr) --liveAllocations;
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif

namespace {

using namespace jobq;
using namespace jobq::testkit;

LimiterUnderTest limiter(const std::string& name) {
  return {name, [name] {
            static SilentLog log;
            static ManualClock clock;
            const MapConfig config;
            return loadPlugin<RateLimiter>(JOBQ_PLUGIN_DIR "/libjobq_limiter_" + name + ".so", name,
                                           PluginEnv{config, clock, log, {}, false});
          }};
}

/// A limiter with a single key; each call leaves at once.
class Counter {
 public:
  explicit Counter(const std::string& name) : limiter_(limiter(name).make()) {}

  RateVerdict ask(const RateLimit& limit, std::int64_t at) {
    const RateVerdict verdict = limiter_->enter("ep/run", limit, fromEpochMillis(1'767'225'600'000 + at));
    if (verdict.allowed) limiter_->leave("ep/run");
    return verdict;
  }
  int pass(int tries, const RateLimit& limit, std::int64_t at) {
    int passed = 0;
    for (int i = 0; i < tries; ++i) passed += ask(limit, at).allowed ? 1 : 0;
    return passed;
  }

 private:
  std::unique_ptr<RateLimiter> limiter_;
};

// The row of /run (core/http/API.md, "Rate limits").
constexpr RateLimit kRun{1'000, Millis(10'000), 200};

TEST(Window, ABurstIsOutExactlyAWindowLater) {
  Counter window("window");
  EXPECT_EQ(window.pass(1'500, kRun, 0), 1'000);
  for (const std::int64_t at : {0, 1, 5'000, 9'998, 9'999}) {
    EXPECT_EQ(window.ask(kRun, at).retryAfter, Millis(10'000 - at)) << at;
  }
  EXPECT_EQ(window.pass(1'500, kRun, 10'000), 1'000);
}

TEST(Window, HalfABurstLeavesBeforeTheOtherHalf) {
  Counter window("window");
  EXPECT_EQ(window.pass(500, kRun, 0), 500);
  EXPECT_EQ(window.pass(600, kRun, 5'000), 500);
  EXPECT_EQ(window.pass(10, kRun, 9'999), 0);
  EXPECT_EQ(window.pass(600, kRun, 10'000), 500);
  EXPECT_EQ(window.ask(kRun, 10'000).retryAfter, Millis(5'000));
  EXPECT_EQ(window.pass(600, kRun, 15'000), 500);
}

TEST(Window, EachMillisecondLeavesTheWindowSeparately) {
  Counter window("window");
  for (int ms = 0; ms < 1'000; ++ms) EXPECT_EQ(window.pass(1, kRun, ms), 1);
  EXPECT_EQ(window.pass(1, kRun, 9'999), 0);
  for (int ms = 0; ms < 1'000; ++ms) EXPECT_EQ(window.pass(2, kRun, 10'000 + ms), 1) << ms;
}

TEST(Window, AShrunkLimitNamesTheMomentWhenEnoughHaveLeft) {
  Counter window("window");
  for (int ms = 0; ms < 3'000; ++ms) EXPECT_EQ(window.pass(1, {3'000, Millis(10'000), 0}, ms), 1);
  EXPECT_EQ(window.ask(kRun, 3'000).retryAfter, Millis(9'000)) << "the last of the 2,001 calls to leave came at 2 s";
  EXPECT_EQ(window.pass(1, kRun, 11'999), 0);
  EXPECT_EQ(window.ask(kRun, 12'000).remaining, 0U);
}

TEST(Bucket, IsRefilledEvenly) {
  Counter bucket("bucket");
  EXPECT_EQ(bucket.pass(1'500, kRun, 0), 1'000);
  for (int ms = 1; ms < 10; ++ms) EXPECT_EQ(bucket.ask(kRun, ms).retryAfter, Millis(10 - ms));
  for (int ms = 10; ms < 20'000; ms += 10) EXPECT_EQ(bucket.pass(2, kRun, ms), 1) << ms;
}

TEST(Bucket, DoesNotDriftInADayOfThirds) {
  Counter bucket("bucket");
  const RateLimit limit{3, Millis(1'000), 0};
  EXPECT_EQ(bucket.pass(4, limit, 0), 3);
  // A token takes 333 1/3 ms: tokens arrive at 334, 667 and 1,000 ms of each second.
  for (std::int64_t second = 0; second < 86'400'000; second += 1'000) {
    ASSERT_EQ(bucket.ask(limit, second + 333).retryAfter, Millis(1));
    ASSERT_EQ(bucket.pass(2, limit, second + 334), 1);
    ASSERT_EQ(bucket.ask(limit, second + 666).retryAfter, Millis(1));
    ASSERT_EQ(bucket.pass(2, limit, second + 667), 1);
    ASSERT_EQ(bucket.ask(limit, second + 999).retryAfter, Millis(1));
    ASSERT_EQ(bucket.pass(2, limit, second + 1'000), 1);
  }
}

TEST(Bucket, HasRoomForTheGreatestNumbers) {
  Counter bucket("bucket");
  const RateLimit most{~0U, Millis(7 * 86'400'000), 0};
  EXPECT_EQ(bucket.ask(most, 0).remaining, ~0U - 1);
  EXPECT_EQ(bucket.ask({1, most.window, 0}, 0).retryAfter, most.window);
  for (std::int64_t year = 1; year < 200; ++year) {
    EXPECT_EQ(bucket.ask(most, year * 366 * 86'400'000).remaining, ~0U - 1) << "a pause of a year";
  }
}

TEST(Bucket, KeepsTheTokensWhenTheWindowChanges) {
  Counter bucket("bucket");
  EXPECT_EQ(bucket.pass(10, {10, Millis(10'000), 0}, 0), 10);
  EXPECT_EQ(bucket.ask({10, Millis(1'000), 0}, 0).retryAfter, Millis(100));
  EXPECT_EQ(bucket.ask({10, Millis(60'000), 0}, 0).retryAfter, Millis(6'000));
  EXPECT_EQ(bucket.pass(2, {10, Millis(60'000), 0}, 6'000), 1);
}

class EachLimiter : public testing::TestWithParam<std::string> {
 protected:
  RateVerdict enter(int key, std::int64_t at) {
    return limiter_->enter(name(key), {2, Millis(10'000), 2}, fromEpochMillis(1'767'225'600'000 + at));
  }
  void leave(int key) { limiter_->leave(name(key)); }
  static std::string name(int key) { return "endpoint-number-" + std::to_string(key) + "/run"; }

  std::unique_ptr<RateLimiter> limiter_ = limiter(GetParam()).make();
};

TEST_P(EachLimiter, ForgetsUnusedKeys) {
#if JOBQ_SANITIZED_THREADS
  GTEST_SKIP() << "counts allocations, and ThreadSanitizer has an operator new of its own";
#endif
  constexpr int kKeys = 20'000;
  const std::int64_t before = liveAllocations;
  for (int key = 0; key < kKeys; ++key) {
    ASSERT_TRUE(enter(key, 0).allowed);
    if (key % 100 != 0) leave(key);
  }
  EXPECT_GE(liveAllocations - before, kKeys) << "each key allocates memory";
  for (int key = kKeys; key < kKeys + 1'000; ++key) ASSERT_TRUE(enter(key, 600'000).allowed);
  EXPECT_LT(liveAllocations - before, kKeys / 2);
  for (int key = 0; key < kKeys; key += 100) {
    ASSERT_TRUE(enter(key, 600'000).allowed);
    ASSERT_EQ(enter(key, 600'000).retryAfter, Millis(1'000)) << "a key with a caller inside is not forgotten";
  }
}

TEST_P(EachLimiter, RemembersCountedCallsForLateRequests) {
  constexpr int kKeys = 1'000;
  for (int key = 0; key < kKeys; ++key) ASSERT_TRUE(enter(key, 0).allowed);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(enter(kKeys, 50'000).allowed);
    leave(kKeys);
  }
  // All other keys ask at the moment when the last key has no counted call left: limiters may then drop idle keys.
  for (int key = 0; key < kKeys; ++key) ASSERT_TRUE(enter(key, 60'000).allowed);
  if (enter(kKeys, 59'999).allowed) leave(kKeys);  // a bucket has regained one token by then
  EXPECT_EQ(enter(kKeys, 59'999).retryAfter, Millis(1));
}

INSTANTIATE_TEST_SUITE_P(Each, EachLimiter, testing::Values("window", "bucket"),
                         [](const auto& info) { return info.param; });

}  // namespace

JOBQ_LIMITER_CONFORMANCE(Each, testing::Values(limiter("window"), limiter("bucket")));

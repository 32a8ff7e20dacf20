// Tests of the return of unused memory to the system (core/process/heap_keeper.h).
#include "core/process/heap_keeper.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "testkit/manual_clock.h"
#include "testkit/recording_log.h"

namespace jobq {
namespace {

constexpr std::size_t kMegabyte = 1UL << 20;

/// An allocator with free pages. The functions of FreePages have no object, so there is a single one.
struct FakePages {
  std::size_t free = 0;
  int swallowed = 0;  // the next calls, which return no page
  std::vector<std::size_t> released;
};
FakePages fake;

class HeapKeeperTest : public testing::Test {
 protected:
  void SetUp() override { fake = {}; }

  void checkHeap(int times, std::size_t megabytes) {
    fake.free = megabytes * kMegabyte;
    for (int i = 0; i < times; ++i) keeper_.checkHeap();
  }

  testkit::ManualClock clock_;
  testkit::RecordingLog log_;
  HeapKeeper keeper_{clock_,
                     log_,
                     {[]() noexcept { return fake.free; },
                      [](std::size_t bytes) noexcept {
                        if (fake.swallowed-- > 0) return;
                        fake.released.push_back(bytes);
                        fake.free -= bytes;
                      }}};
};

TEST_F(HeapKeeperTest, ReturnsMemoryFoundFreeTenTimes) {
  checkHeap(9, 50);
  EXPECT_TRUE(fake.released.empty());
  checkHeap(1, 50);
  EXPECT_EQ(fake.released, std::vector{49 * kMegabyte}) << "1 MB stays";
  checkHeap(40, 1);
  EXPECT_EQ(fake.released.size(), 1U);
}

TEST_F(HeapKeeperTest, KeepsMemoryInRepeatedUse) {
  for (int i = 0; i < 50; ++i) {
    checkHeap(5, 400);
    checkHeap(1, 1);
  }
  EXPECT_TRUE(fake.released.empty());
}

TEST_F(HeapKeeperTest, ReturnsTheLeastOfTheLooks) {
  checkHeap(4, 100);
  checkHeap(1, 30);
  checkHeap(5, 100);
  EXPECT_EQ(fake.released, std::vector{29 * kMegabyte});
}

TEST_F(HeapKeeperTest, ReturnsMuchMemoryInParts) {
  checkHeap(10, 200);
  checkHeap(1, 136);
  checkHeap(1, 72);
  checkHeap(1, 8);
  EXPECT_EQ(fake.released, (std::vector{64 * kMegabyte, 64 * kMegabyte, 64 * kMegabyte, 7 * kMegabyte}));
}

TEST_F(HeapKeeperTest, ReturnsNoPageRecentlyInUse) {
  checkHeap(10, 200);
  checkHeap(1, 20);
  EXPECT_EQ(fake.released, (std::vector{64 * kMegabyte, 19 * kMegabyte}));
  checkHeap(1, 0);
  checkHeap(7, 200);
  EXPECT_EQ(fake.released.size(), 2U) << "the pages were in use a moment ago";
  checkHeap(1, 0);
  EXPECT_EQ(fake.released.size(), 2U);
}

TEST_F(HeapKeeperTest, RepeatsACallThatReturnsNothing) {
  fake.swallowed = 30;
  checkHeap(10, 50);
  EXPECT_EQ(fake.released, std::vector{49 * kMegabyte});
}

}  // namespace
}  // namespace jobq

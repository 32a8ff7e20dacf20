// Tests of the budget for large bodies, in all and for one endpoint (core/http/api/body_memory.h).
#include "core/http/api/body_memory.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace jobq {
namespace {

constexpr std::uint64_t kMegabyte = 1UL << 20;

TEST(BodyMemoryTest, AnEndpointHasAQuarter) {
  BodyMemory memory(400 * kMegabyte);
  std::optional<BodyMemory::Reservation> first(std::in_place);
  BodyMemory::Reservation second;
  BodyMemory::Reservation other;
  EXPECT_TRUE(memory.hasRoom("a", 100 * kMegabyte));
  EXPECT_FALSE(memory.hasRoom("a", 100 * kMegabyte + 1));
  ASSERT_TRUE(first->grow(memory, "a", 60 * kMegabyte));
  ASSERT_TRUE(second.grow(memory, "a", 40 * kMegabyte));
  EXPECT_FALSE(second.grow(memory, "a", 1));
  EXPECT_EQ(second.amount(), 40 * kMegabyte) << "the share is as before";
  EXPECT_FALSE(memory.hasRoom("a", 1));
  EXPECT_TRUE(other.grow(memory, "b", 100 * kMegabyte)) << "the second endpoint has a separate quarter";
  EXPECT_EQ(memory.left(), 200 * kMegabyte);
  first.reset();
  EXPECT_EQ(memory.left(), 260 * kMegabyte);
  EXPECT_TRUE(second.grow(memory, "a", 60 * kMegabyte)) << "returned memory is free again";
}

TEST(BodyMemoryTest, AnEndpointCanTakeTheLargestBodyHoweverSmallTheMemoryIs) {
  BodyMemory memory(BodyMemory::kLargestBody);
  BodyMemory::Reservation reservation;
  EXPECT_TRUE(reservation.grow(memory, "a", BodyMemory::kLargestBody));
  EXPECT_FALSE(memory.hasRoom("b", 1)) << "the endpoint holds the whole memory";
  BodyMemory::Reservation late;
  EXPECT_FALSE(late.grow(memory, "b", 1));
  reservation.release();
  EXPECT_TRUE(late.grow(memory, "b", BodyMemory::kLargestBody)) << "a refused reservation holds no memory";
}

TEST(BodyMemoryTest, AMovedShareCountsOnce) {
  BodyMemory memory(100 * kMegabyte);
  BodyMemory::Reservation reservation;
  ASSERT_TRUE(reservation.grow(memory, "a", 10 * kMegabyte));
  {
    BodyMemory::Reservation moved = std::move(reservation);
    EXPECT_EQ(moved.amount(), 10 * kMegabyte);
    BodyMemory::Reservation assigned;
    assigned = std::move(moved);
    EXPECT_EQ(memory.left(), 90 * kMegabyte);
  }
  EXPECT_EQ(memory.left(), 100 * kMegabyte);
}

}  // namespace
}  // namespace jobq

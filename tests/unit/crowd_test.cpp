// Tests of the measure of many requests at once (core/http/transport/crowd.h).
#include "core/http/transport/crowd.h"

#include <gtest/gtest.h>

#include <chrono>

namespace jobq {
namespace {

using std::chrono::milliseconds;

TEST(CrowdTest, ThreadsAreACrowdOnlyWhileBusy) {
  Crowd crowd(4);
  EXPECT_FALSE(crowd.isLarge());
  crowd.noteThreads(4);
  EXPECT_FALSE(crowd.isLarge());
  crowd.noteThreads(5);
  EXPECT_TRUE(crowd.isLarge());
  crowd.noteThreads(4);
  EXPECT_FALSE(crowd.isLarge());
}

TEST(CrowdTest, ACrowdOfTheReactorOutlastsShortQuietMoments) {
  Crowd crowd(4);
  const Crowd::Moment begin{};
  crowd.noteReactor(4, begin);
  EXPECT_FALSE(crowd.isLarge());
  crowd.noteReactor(5, begin);
  EXPECT_TRUE(crowd.isLarge());
  crowd.noteReactor(1, begin + milliseconds(49));
  EXPECT_TRUE(crowd.isLarge());
  crowd.noteReactor(5, begin + milliseconds(49));
  crowd.noteReactor(1, begin + milliseconds(98));
  EXPECT_TRUE(crowd.isLarge()) << "the time counts from the last large number";
  crowd.noteReactor(1, begin + milliseconds(99));
  EXPECT_FALSE(crowd.isLarge());
}

}  // namespace
}  // namespace jobq

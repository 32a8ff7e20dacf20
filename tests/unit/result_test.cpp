// Tests of results: a value or a failure (core/base/result.h, core/model/script_result.h).
#include "core/base/result.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "core/model/script_result.h"

namespace jobq {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return invalid("number must be even", "number");
  return number / 2;
}

TEST(ResultTest, HoldsAValueOrAFailure) {
  const Result<int> good = half(4);
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 2);
  EXPECT_THROW((void)good.failure(), std::bad_variant_access);
  const Result<int> bad = half(3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.failure().kind, Failure::Kind::invalid);
  EXPECT_EQ(bad.failure().faults.at(0).field, "number");
  EXPECT_EQ(bad.failure().message(), "number must be even");
  EXPECT_THROW((void)*bad, std::bad_variant_access);
}

TEST(ResultTest, MovesTheValueOut) {
  Result<std::unique_ptr<int>> made(std::make_unique<int>(7));
  EXPECT_EQ(**made, 7);
  const std::unique_ptr<int> taken = *std::move(made);
  EXPECT_EQ(*taken, 7);
}

TEST(ResultTest, WithoutAValueIsASuccessUnlessThereIsAFailure) {
  const Result<void> done;
  EXPECT_TRUE(done);
  const Result<void> failed(notFound("there is no such thing"));
  EXPECT_FALSE(failed);
  EXPECT_EQ(failed.failure().kind, Failure::Kind::notFound);
}

struct CustomFailure {
  int status = 400;
  std::unique_ptr<int> pause;
};

Result<int, CustomFailure> third(int number) {
  if (number % 3 != 0) return CustomFailure{429, std::make_unique<int>(5)};
  return number / 3;
}

Result<void, CustomFailure> checkThird(int number) {
  if (number % 3 != 0) return CustomFailure{503, nullptr};
  return {};
}

TEST(ResultTest, MayFailWithADifferentTypeOfReason) {
  EXPECT_EQ(*third(9), 3);
  const auto bad = third(1);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.failure().status, 429);
  EXPECT_EQ(*bad.failure().pause, 5);
  EXPECT_THROW((void)*bad, std::bad_variant_access);
  EXPECT_TRUE(checkThird(3));
  const auto refused = checkThird(4);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().status, 503);
}

TEST(ResultTest, AFailureJoinsTheSentences) {
  EXPECT_EQ((Failure{Failure::Kind::invalid, {{"a", "a is wrong"}, {"b", "b is wrong"}}}).message(),
            "a is wrong; b is wrong");
}

TEST(ResultTest, AScriptWithAFaultFails) {
  EXPECT_TRUE(scriptResult(std::nullopt));
  EXPECT_EQ(scriptResult("broken.lua has no end").failure().message(), "broken.lua has no end");
}

TEST(ResultTest, AnAssignmentKeepsTheOldValueOnFailure) {
  std::uint32_t number = 9;
  EXPECT_FALSE(assign(number, half(1)));
  EXPECT_EQ(number, 9U);
  EXPECT_TRUE(assign(number, half(8)));
  EXPECT_EQ(number, 4U);
}

}  // namespace
}  // namespace jobq

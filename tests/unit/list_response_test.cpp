// Tests of the memory budget for answers that grows with a list (core/http/api/list_response.h).
#include "core/http/api/list_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/http/api/exchange.h"

namespace jobq {
namespace {

using testing::HasSubstr;

class ListResponseTest : public testing::Test {
 protected:
  static std::string item(std::size_t size) { return '"' + std::string(size - 2, 'i') + '"'; }

  Budget memory_{3 * kFreeBody};
  ApiRequest call_;
  ListResponseTest() {
    call_.path = "/v1/things";
    call_.answers = &memory_;
  }
};

TEST_F(ListResponseTest, IsAnArrayOfTheItems) {
  EXPECT_EQ(ListResponse(call_).finish().body, "[]");
  ListResponse list(call_);
  EXPECT_TRUE(list.add("1"));
  EXPECT_TRUE(list.add("{}"));
  const ApiResponse response = list.finish();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "[1,{}]");
  EXPECT_EQ(call_.answerMemory.amount(), 0U);
}

TEST_F(ListResponseTest, DrawsOnlyWhatGoesBeyondTheFreePart) {
  ListResponse list(call_);
  EXPECT_TRUE(list.add(item(kFreeBody - 3)));
  EXPECT_EQ(memory_.left(), 3 * kFreeBody);
  EXPECT_TRUE(list.add(item(2)));
  EXPECT_EQ(memory_.left(), 2 * kFreeBody);
  EXPECT_TRUE(list.add(item(kFreeBody / 2)));
  EXPECT_EQ(memory_.left(), 2 * kFreeBody);
}

TEST_F(ListResponseTest, IsRefusedWhenThereIsNoMemoryLeft) {
  ListResponse list(call_);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(list.add(item(kFreeBody)));
  EXPECT_FALSE(list.add(item(kFreeBody)));
  EXPECT_FALSE(list.add("1"));
  const ApiResponse response = list.finish();
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("too many large answers"));
}

TEST_F(ListResponseTest, MemoryOfOneListIsNotThereForAnother) {
  ListResponse first(call_);
  EXPECT_TRUE(first.add(item(4 * kFreeBody - 8)));
  ApiRequest other;
  other.answers = &memory_;
  {
    ListResponse second(other);
    EXPECT_FALSE(second.add(item(2 * kFreeBody)));
  }
  call_.answerMemory.release();  // the answer was sent
  ListResponse third(other);
  EXPECT_TRUE(third.add(item(2 * kFreeBody)));
}

}  // namespace
}  // namespace jobq

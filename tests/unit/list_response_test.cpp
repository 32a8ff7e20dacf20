// Tests of the memory budget for answers that grows with a list (core/http/api/management/list_response.h).
#include "core/http/api/management/list_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/http/api/body_memory.h"

namespace jobq {
namespace {

using testing::HasSubstr;

class ListResponseTest : public testing::Test {
 protected:
  static constexpr std::size_t kStep = OutputRoom::kFree;

  static std::string item(std::size_t size) { return '"' + std::string(size - 2, 'i') + '"'; }

  BodyMemory memory_{BodyMemory::kLargestBody};
  ApiRequest call_;
  ListResponseTest() {
    call_.path = "/v1/things";
    call_.room.use(memory_, "");
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
  EXPECT_EQ(call_.room.held(), 0U);
}

// The list is not copied into the object.
TEST_F(ListResponseTest, IsTheFirstMemberOfAnObject) {
  EXPECT_EQ(ListResponse(call_, "things").finish(R"({"total":0})").body, R"({"things":[],"total":0})");
  ListResponse list(call_, "things");
  EXPECT_TRUE(list.add("1"));
  EXPECT_TRUE(list.add("2"));
  EXPECT_EQ(list.finish(R"({"total":2,"more":false})").body, R"({"things":[1,2],"total":2,"more":false})");
  EXPECT_EQ(call_.room.held(), 0U);
}

TEST_F(ListResponseTest, DrawsOnlyBytesBeyondTheFreePart) {
  ListResponse list(call_);
  EXPECT_TRUE(list.add(item(kStep - 3)));
  EXPECT_EQ(call_.room.held(), 0U);
  EXPECT_TRUE(list.add(item(2)));
  EXPECT_EQ(call_.room.held(), 2 * kStep) << "a growing text exists twice for a moment";
  EXPECT_TRUE(list.add(item(kStep / 2)));
  EXPECT_EQ(call_.room.held(), 2 * kStep);
}

TEST_F(ListResponseTest, IsRefusedWhenThereIsNoMemoryLeft) {
  ListResponse list(call_);
  EXPECT_TRUE(list.add(item(BodyMemory::kLargestBody / 2)));
  EXPECT_FALSE(list.add(item(kStep)));
  EXPECT_FALSE(list.add("1"));
  const ApiResponse response = list.finish();
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body,
              HasSubstr("too many bytes of large answers are being sent: the limit is 536870912 (fixed)"));
}

TEST_F(ListResponseTest, MemoryOfAListIsNotAvailableToASecondList) {
  ListResponse first(call_);
  EXPECT_TRUE(first.add(item(BodyMemory::kLargestBody / 2)));
  ApiRequest other;
  other.room.use(memory_, "");
  {
    ListResponse second(other);
    EXPECT_FALSE(second.add(item(2 * kStep)));
  }
  call_.room.noteText(0);  // the answer was sent
  ListResponse third(other);
  EXPECT_TRUE(third.add(item(2 * kStep)));
}

}  // namespace
}  // namespace jobq

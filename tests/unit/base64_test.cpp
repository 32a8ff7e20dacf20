// Tests of base64: the vectors of the RFC, every byte, and each kind of refused text.
#include "jobq/base64.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>

namespace {

using namespace jobq;

TEST(Base64, MatchesTheVectorsOfTheRfc) {
  const std::pair<const char*, const char*> kVectors[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"},
                                                          {"\xff\xfe\xfd", "//79"}};
  for (const auto& [bytes, text] : kVectors) {
    EXPECT_EQ(toBase64(bytes), text);
    EXPECT_EQ(fromBase64(text), bytes);
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  for (std::size_t size = 0; size <= all.size(); ++size) {
    EXPECT_EQ(fromBase64(toBase64(all.substr(0, size))), all.substr(0, size)) << size;
  }
}

TEST(Base64, AppendsToAText) {
  std::string text = "v1,";
  appendBase64(text, "foo");
  EXPECT_EQ(text, "v1,Zm9v");
}

TEST(Base64, RefusesEveryOtherText) {
  for (const char* wrong : {"Z", "Zg", "Zg=", "Z===", "====", "Zm9vY", "Zm 9", "Zm9v\n", "Zm9v\nZm9",
                            "Zg==Zg==", "Zg==Zm9v", "_w==", "-w==", "Zh==", "Zm9=", "Zm9vZh=="}) {
    EXPECT_FALSE(fromBase64(wrong)) << wrong;
  }
  EXPECT_FALSE(fromBase64(std::string_view("Zm9\0", 4)));
  EXPECT_FALSE(fromBase64("Zm9\xff"));
}

TEST(Base64, EachByteStringHasASingleText) {
  const std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  int accepted = 0;
  for (const char first : alphabet) {
    for (const char second : alphabet) {
      const std::string text{first, second, '=', '='};
      const auto bytes = fromBase64(text);
      if (!bytes) continue;
      ++accepted;
      EXPECT_EQ(toBase64(*bytes), text);
    }
  }
  EXPECT_EQ(accepted, 256);
}

TEST(Base64, AFaultNamesPlaceAndReason) {
  const auto faultOf = [](std::string_view text) { return std::get<Base64Fault>(readBase64(text)); };
  EXPECT_EQ(faultOf("Zm9v\nZm9").offset, 4U);
  EXPECT_STREQ(faultOf("Zm9v\nZm9").reason, "a character is not in the base64 alphabet");
  EXPECT_EQ(faultOf("Zg==Zm9v").offset, 2U);
  EXPECT_EQ(faultOf("====").offset, 0U);
  EXPECT_EQ(faultOf("Zm9vY").offset, 5U);
  EXPECT_STREQ(faultOf("Zm9vY").reason, "the length is not a multiple of four");
  EXPECT_EQ(faultOf("Zm9vZh==").offset, 5U);
  EXPECT_STREQ(faultOf("Zm9vZh==").reason, "the last character has bits that belong to no byte");
}

}  // namespace

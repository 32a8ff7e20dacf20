// Tests of the target of a request: path, query, and the refused encodings.
#include "core/http/api/target.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace jobq;
using Query = std::multimap<std::string, std::string>;

Target targetOf(std::string_view text) {
  const auto target = readTarget(text);
  EXPECT_TRUE(target) << text;
  return target ? *target : Target{};
}

TEST(RequestTarget, WithoutAQueryIsThePath) {
  for (const char* text : {"/", "/v2/echo/run", "*", "//a//", "/a;b,c:d@e!$'()*=&~-._"}) {
    EXPECT_EQ(targetOf(text).path, text);
    EXPECT_TRUE(targetOf(text).query.empty()) << text;
  }
}

TEST(RequestTarget, EveryByteButNulCanBeEncodedInEitherCase) {
  for (int byte = 1; byte < 256; ++byte) {
    char small[4];
    char large[4];
    std::snprintf(small, sizeof small, "%%%02x", byte);
    std::snprintf(large, sizeof large, "%%%02X", byte);
    const std::string plain(1, static_cast<char>(byte));
    for (const std::string& code : {std::string(small), std::string(large)}) {
      EXPECT_EQ(targetOf("/" + code).path, "/" + (byte == '/' ? code : plain)) << code;
      EXPECT_EQ(targetOf("/?" + code + "=" + code).query, (Query{{plain, plain}})) << code;
    }
  }
}

TEST(RequestTarget, IsDecodedOnce) {
  EXPECT_EQ(targetOf("/%252F%2500").path, "/%2F%00");
  EXPECT_EQ(targetOf("/?a=%252B%2526").query, (Query{{"a", "%2B%26"}}));
}

TEST(RequestTarget, EncodedSeparatorsSeparateNothing) {
  EXPECT_EQ(targetOf("/a%3Fb%23c").path, "/a?b#c");
  EXPECT_TRUE(targetOf("/a%3Fb%23c").query.empty());
  EXPECT_EQ(targetOf("/?a%3Db=c%26d%3De%23f").query, (Query{{"a=b", "c&d=e#f"}}));
}

TEST(RequestTarget, AnEncodedSlashIsNotASeparatorOfThePath) {
  EXPECT_EQ(targetOf("/v2/echo%2Fhealth").path, "/v2/echo%2Fhealth");
  EXPECT_EQ(targetOf("/v2/echo%2fhealth?a%2Fb=%2f").path, "/v2/echo%2fhealth");
  EXPECT_EQ(targetOf("/?a%2Fb=%2f").query, (Query{{"a/b", "/"}}));
}

TEST(RequestTarget, APlusIsABlankInTheQueryOnly) {
  EXPECT_EQ(targetOf("/a+b").path, "/a+b");
  EXPECT_EQ(targetOf("/?a+b=c+d%2B").query, (Query{{"a b", "c d+"}}));
}

TEST(RequestTarget, OnlyTheFirstMarkAndTheFirstEqualsSignSeparate) {
  EXPECT_EQ(targetOf("/a?b?c=d").query, (Query{{"b?c", "d"}}));
  EXPECT_EQ(targetOf("/?a=b=c==").query, (Query{{"a", "b=c=="}}));
}

TEST(RequestTarget, NamesAndValuesMayBeMissing) {
  EXPECT_TRUE(targetOf("/?").query.empty());
  EXPECT_TRUE(targetOf("/?&&&").query.empty());
  EXPECT_EQ(targetOf("/?a&b=&=c&=").query, (Query{{"a", ""}, {"b", ""}, {"", "c"}, {"", ""}}));
}

TEST(RequestTarget, ARepeatedKeyKeepsTheOrderOfTheValues) {
  const Target target = targetOf("/?k=2&other=x&k=1&%6b=3");
  std::vector<std::string> values;
  for (auto [at, end] = target.query.equal_range("k"); at != end; ++at) values.push_back(at->second);
  EXPECT_EQ(values, (std::vector<std::string>{"2", "1", "3"}));
}

TEST(RequestTarget, AFragmentIsNotAPartOfTheTarget) {
  EXPECT_EQ(targetOf("/a#b?c=d").path, "/a");
  EXPECT_TRUE(targetOf("/a#b?c=d").query.empty());
  EXPECT_EQ(targetOf("/a?b=c#&d=e").query, (Query{{"b", "c"}}));
  EXPECT_EQ(targetOf("/a#%zz%").path, "/a") << "a fragment is not decoded";
}

TEST(RequestTarget, ABrokenEncodingIsRefusedAtAnyPlace) {
  for (const std::string bad : {"%", "%4", "%zz", "%4g", "%g4", "%%41", "%-1", "%+1", "% 1", "%0x", "%00"}) {
    EXPECT_FALSE(readTarget("/" + bad)) << bad;
    EXPECT_FALSE(readTarget("/" + bad + "?a=b")) << bad;
    EXPECT_FALSE(readTarget("/?" + bad + "=b")) << bad;
    EXPECT_FALSE(readTarget("/?a=" + bad)) << bad;
    EXPECT_FALSE(readTarget("/?a=" + bad + "&c=d")) << bad;
    EXPECT_FALSE(readTarget("/?a=b&" + bad)) << bad;
  }
  EXPECT_FALSE(readTarget("/?a=%4&1=b")) << "an encoding does not go on in the next pair";
}

}  // namespace

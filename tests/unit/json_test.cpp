// Tests of the strict JSON scanner: accepted texts, the places of their parts, and bytes left unchanged.
#include "jobq/json.h"

#include <gtest/gtest.h>

namespace {

using namespace jobq;
using json::Document;

Document parsed(std::string_view text) {
  auto result = json::read(text);
  EXPECT_TRUE(std::holds_alternative<Document>(result)) << text;
  return std::holds_alternative<Document>(result) ? std::get<Document>(result) : Document{};
}

TEST(Json, AcceptsEveryKindOfValue) {
  for (const char* text :
       {"{}", "[]", "\"\"", "0", "-0", "1.0", "1e400", "1E+2", "123456789012345678901234567890", "true", "false",
        "null", " \t\r\n{ \"a\" : [ 1 , { } ] } \n", "\"\\u2028\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\ud83d\\ude00\"",
        "\"\xf0\x9f\x98\x80\xe2\x80\xa8\"", "[[[]]]", "{\"\":0}"}) {
    EXPECT_TRUE(json::valid(text)) << text;
    EXPECT_FALSE(json::check(text)) << text;
    (void)parsed(text);
  }
}

TEST(Json, RefusesInvalidJson) {
  const std::string bad[] = {"",
                             " ",
                             "{",
                             "}",
                             "[",
                             "[1",
                             "[1,",
                             "[1,]",
                             "[,1]",
                             "{\"a\"}",
                             "{\"a\":}",
                             "{\"a\":1,}",
                             "{a:1}",
                             "{'a':1}",
                             "{1:2}",
                             "01",
                             "+1",
                             "1.",
                             ".5",
                             "-",
                             "1e",
                             "1e+",
                             "0x1",
                             "NaN",
                             "Infinity",
                             "nul",
                             "True",
                             "\"",
                             "\"\\x\"",
                             "\"\\u12\"",
                             "\"\\ud800\"",
                             "\"\\ud800\\u0041\"",
                             "\"\\udc00\"",
                             "\"\n\"",
                             "\"a\tb\"",
                             "\"\x80\"",
                             "\"\xc0\xaf\"",
                             "\"\xed\xa0\x80\"",
                             "\"\xf4\x90\x80\x80\"",
                             "\"\xe2\x80\"",
                             "1 2",
                             "{} x",
                             "\xef\xbb\xbf{}",
                             "// c\n1",
                             std::string("{}\0", 3),
                             std::string("{\"a\":1}\0junk", 12),
                             std::string("\"\0\"", 3)};
  for (const std::string& text : bad) {
    const auto fault = json::check(text);
    const auto read = json::read(text);
    ASSERT_TRUE(fault && std::holds_alternative<json::Fault>(read)) << text;
    EXPECT_EQ(fault->offset, std::get<json::Fault>(read).offset) << text;
    EXPECT_STREQ(fault->reason, std::get<json::Fault>(read).reason) << text;
  }
}

TEST(Json, NestingIsBoundedWithoutRecursion) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(json::valid(nested(json::kMaxDepth)));
  EXPECT_FALSE(json::valid(nested(json::kMaxDepth + 1)));
  EXPECT_FALSE(json::valid(std::string(10'000'000, '[')));
}

TEST(Json, ListsAsManyPartsAsAreAskedForAndReadsAll) {
  const std::string text = R"({"a":[1,2],"b":{"c":3,"d":4},"e":5})";
  const auto object = std::get<Document>(json::read(text, 2));
  ASSERT_EQ(object.members.size(), 2U);
  EXPECT_EQ(object.members[1].value.raw, R"({"c":3,"d":4})");
  EXPECT_EQ(object.root.raw, text);
  EXPECT_FALSE(object.find("e"));
  const auto array = std::get<Document>(json::read("[[1],[2],[3]]", 1));
  ASSERT_EQ(array.elements.size(), 1U);
  EXPECT_EQ(array.elements[0].raw, "[1]");
  EXPECT_TRUE(std::holds_alternative<json::Fault>(json::read("[1,2,3", 1)));
}

TEST(Json, SlicesAreTheCallersBytes) {
  const std::string text = "{ \"input\" : { \"b\":1.0, \"a\":-0 } , \"x\\u0079\":[1 ,2], \"n\":1e400 }";
  const Document document = parsed(text);
  EXPECT_EQ(document.find("input")->raw, "{ \"b\":1.0, \"a\":-0 }");
  EXPECT_EQ(document.find("xy")->raw, "[1 ,2]") << "keys are compared decoded";
  EXPECT_EQ(document.find("n")->raw, "1e400");
  EXPECT_EQ(document.find("n")->kind, json::Kind::number);
  EXPECT_FALSE(document.find("none"));
  const Document list = parsed("[ 1, \"two\" ,{}]");
  ASSERT_EQ(list.elements.size(), 3U);
  EXPECT_EQ(list.elements[1].raw, "\"two\"");
  EXPECT_EQ(list.elements[2].kind, json::Kind::object);
}

TEST(Json, TheLastOfSeveralKeysCounts) { EXPECT_EQ(parsed(R"({"a":1,"a":2})").find("a")->raw, "2"); }

TEST(Json, ScalarsConvert) {
  EXPECT_EQ(json::toInteger({json::Kind::number, "-42"}), -42);
  EXPECT_FALSE(json::toInteger({json::Kind::number, "1.0"}));
  EXPECT_FALSE(json::toInteger({json::Kind::number, "9223372036854775808"}));
  EXPECT_FALSE(json::toInteger({json::Kind::string, "\"1\""}));
  EXPECT_EQ(json::toBoolean({json::Kind::boolean, "true"}), true);
  EXPECT_FALSE(json::toBoolean({json::Kind::number, "1"}));
  EXPECT_EQ(json::toText({json::Kind::string, R"("a\n\u00e4\ud83d\ude00\/")"}), "a\n\xc3\xa4\xf0\x9f\x98\x80/");
}

TEST(Json, QuotingRoundTrips) {
  std::string all;
  for (int c = 0; c < 128; ++c) all.push_back(static_cast<char>(c));
  all += "\xc3\xa4\xf0\x9f\x98\x80";
  const std::string quoted = json::quoted(all);
  EXPECT_TRUE(json::valid(quoted));
  EXPECT_EQ(json::decode(quoted), all);
  EXPECT_TRUE(json::valid(json::quoted("\xff\xc0z")));
  EXPECT_EQ(json::decode(json::quoted("\xffz")), "\xef\xbf\xbdz");
}

TEST(Json, ALongStringIsScannedFromEveryAlignment) {
  for (std::size_t lead = 0; lead < 17; ++lead) {
    for (const char* odd : {"\"", "\\q", "\x01", "\x80", "\x7f"}) {
      const std::string text = "\"" + std::string(lead, 'a') + odd + std::string(20, 'b') + "\"";
      EXPECT_EQ(json::valid(text), odd[0] == '\x7f') << lead;
    }
  }
}

TEST(Json, AFaultNamesPlaceAndReason) {
  const auto result = json::read("{\"a\": 01}");
  ASSERT_TRUE(std::holds_alternative<json::Fault>(result));
  EXPECT_EQ(std::get<json::Fault>(result).offset, 7U);
}

}  // namespace

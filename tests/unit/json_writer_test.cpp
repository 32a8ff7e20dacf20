// Tests of the JSON writer: every kind of value, nesting, escapes, and unchanged texts.
#include "jobq/json_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace jobq;
using json::ArrayWriter;
using json::ObjectWriter;

template <class T>
std::string written(const T& value) {
  std::string out;
  json::appendValue(out, value);
  return out;
}

TEST(JsonWriter, WritesAnObject) {
  const std::string text = json::object([](ObjectWriter& out) {
    out.member("id", std::string("a\"b"));
    out.member("size", 3);
    out.member("done", true);
    out.member("fault", nullptr);
  });
  EXPECT_EQ(text, R"({"id":"a\"b","size":3,"done":true,"fault":null})");
  EXPECT_EQ(json::object([](ObjectWriter&) {}), "{}");
}

TEST(JsonWriter, WritesAnArray) {
  const std::string text = json::array([](ArrayWriter& out) {
    EXPECT_TRUE(out.empty());
    out.element("one");
    EXPECT_FALSE(out.empty());
    out.element(2U);
  });
  EXPECT_EQ(text, R"(["one",2])");
  EXPECT_EQ(json::array([](ArrayWriter&) {}), "[]");
}

TEST(JsonWriter, ClosesNestedValues) {
  const std::string text = json::object([](ObjectWriter& out) {
    out.object("none", [](ObjectWriter&) {});
    out.array("rows", [](ArrayWriter& rows) {
      rows.object([](ObjectWriter& row) { row.member("n", 1); });
      rows.array([](ArrayWriter& row) { row.element(2); });
      rows.element(3);
    });
    out.member("last", 4);
  });
  EXPECT_EQ(text, R"({"none":{},"rows":[{"n":1},[2],3],"last":4})");
}

TEST(JsonWriter, AppendsBehindAText) {
  std::string out = "data: ";
  json::appendObject(out, [](ObjectWriter& object) { object.member("a", 1); });
  json::appendArray(out, [](ArrayWriter& array) { array.element(2); });
  EXPECT_EQ(out, R"(data: {"a":1}[2])");
}

TEST(JsonWriter, EscapesNamesKnownOnlyAtRunTime) {
  const std::string text = json::object([](ObjectWriter& out) {
    out.namedMember("a\"\n", 1);
    out.namedMember(std::string("\xff"), 2);
    out.namedRaw("\\", "[ ]");
  });
  EXPECT_EQ(text, "{\"a\\\"\\u000a\":1,\"\xef\xbf\xbd\":2,\"\\\\\":[ ]}");
  EXPECT_TRUE(json::valid(text));
}

TEST(JsonWriter, KeepsCheckedTextsByteForByte) {
  const std::string text = json::object([](ObjectWriter& out) {
    out.raw("output", "{ \"n\": 1.0 }");
    out.raw("nothing", "");
    out.array("list", [](ArrayWriter& list) {
      list.raw("-0");
      list.raw("");
    });
  });
  EXPECT_EQ(text, R"({"output":{ "n": 1.0 },"nothing":null,"list":[-0,null]})");
}

TEST(JsonWriter, WritesNumbersOfEverySize) {
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(written(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(written(static_cast<unsigned char>(7)), "7");
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(-2.5e300), "-2.5e+300");
  EXPECT_EQ(written(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(written(std::numeric_limits<double>::quiet_NaN()), "null");
  for (const double number : {5e-324, 1.7976931348623157e308, -1.0 / 3}) EXPECT_TRUE(json::valid(written(number)));
}

TEST(JsonWriter, WritesOptionalsListsAndMaps) {
  EXPECT_EQ(written(std::optional<int>()), "null");
  EXPECT_EQ(written(std::optional(std::string("x"))), "\"x\"");
  EXPECT_EQ(written(std::vector<std::string>{"a", "\\"}), R"(["a","\\"])");
  EXPECT_EQ(written(std::vector<bool>{true, false}), "[true,false]");
  EXPECT_EQ(written(std::map<std::string, std::string>{{"k", "v"}, {"q\"", ""}}), R"({"k":"v","q\"":""})");
  EXPECT_EQ(written(std::map<std::string, std::vector<int>>{{"k", {1, 2}}}), R"({"k":[1,2]})");
}

TEST(JsonWriter, LetsFunctionsAppendValues) {
  int calls = 0;
  const auto pieces = [&calls](std::string& out) {
    ++calls;
    out += '"';
    json::appendEscaped(out, "a\"");
    json::appendEscaped(out, "\n\xc3\xa4");
    out += '"';
  };
  const std::string text = json::object([&](ObjectWriter& out) {
    out.namedMember(pieces, 1);
    out.namedMember("n", pieces);
    out.array("list", [&](ArrayWriter& list) {
      list.element(pieces);
      list.element([](std::string& to) { json::appendArray(to, [](ArrayWriter&) {}); });
    });
  });
  const std::string quoted = json::quoted("a\"\n\xc3\xa4");
  EXPECT_EQ(text, "{" + quoted + ":1,\"n\":" + quoted + ",\"list\":[" + quoted + ",[]]}");
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(json::valid(text));
}

TEST(JsonWriter, AnExceptionOfTheCallerPasses) {
  EXPECT_THROW((void)json::object([](ObjectWriter&) { throw 1; }), int);
  EXPECT_THROW((void)written([](std::string&) { throw 1; }), int);
}

}  // namespace

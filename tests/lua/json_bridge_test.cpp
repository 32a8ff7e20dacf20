// JSON through Lua and back: values come out unchanged, and refusals name the place.
#include <cmath>
#include <random>

#include "json_outline.h"
#include "lua_fixture.h"

namespace jobq::lua::test {
namespace {

class JsonBridgeTest : public LuaTest {
 protected:
  void SetUp() override {
    scripts.write("echo", "return function(input) return input end");
    factory = handlers();
    echo = factory->make(envFor("echo"));
  }
  std::string through(const std::string& text) {
    FakeJobContext context;
    return outcome(*echo, text, context);
  }
  std::unique_ptr<HandlerFactory> factory;
  std::unique_ptr<JobHandler> echo;
};

TEST_F(JsonBridgeTest, ValuesKeepTheTypesOfJson) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"a":[],"b":{},"c":[[]],"d":[{}]})", R"({"a":[],"b":{},"c":[[]],"d":[{}]})"},
      {R"({"n":null,"t":true,"f":false})", R"({"f":false,"n":null,"t":true})"},
      {R"([9223372036854775807,-9223372036854775808,0,-1])", R"([9223372036854775807,-9223372036854775808,0,-1])"},
      {R"([9223372036854775808])", R"([9223372036854775808.0])"},
      {R"([1.0,1e2,-0,-0.0,0.1])", R"([1.0,100.0,-0.0,-0.0,0.1])"},
      {R"([1e308,5e-324,2.2250738585072014e-308])", R"([1e+308,5e-324,2.2250738585072014e-308])"},
      {R"(["\u00e4\ud83d\ude00\n\u0000\"\\\/"])", "[\"\xc3\xa4\xf0\x9f\x98\x80\\u000a\\u0000\\\"\\\\/\"]"},
      {R"({"b":1,"a":2,"\u0061b":3,"":4})", R"({"":4,"a":2,"ab":3,"b":1})"},
      {R"({"1":"a","2":"b"})", R"({"1":"a","2":"b"})"},
      {R"({"a":1,"a":2})", R"({"a":2})"},
      {" [ 1 , [ ] , { } ] ", "[1,[],{}]"},
      {R"(["x"])", R"(["x"])"},
      {R"({"__index":1,"__gc":2,"__mode":3,"__metatable":4,"n":5})",
       R"({"__gc":2,"__index":1,"__metatable":4,"__mode":3,"n":5})"},
      {R"([null,null])", R"([null,null])"},
  };
  for (const auto& [in, out] : cases) EXPECT_EQ(through(in), out);
}

TEST_F(JsonBridgeTest, NumbersBeyondADoubleAreInfinityOrZero) {
  const std::string zeros(400, '0');
  for (const std::string& tiny :
       std::vector<std::string>{"0." + zeros + "1", "1e-400", "0." + zeros + "1e+5", "123e-500",
                                "1e-9223372036854775807", "1e-99999999999999999999"}) {
    EXPECT_EQ(through("[" + tiny + "]"), "[0.0]") << tiny;
    EXPECT_EQ(through("[-" + tiny + "]"), "[-0.0]") << tiny;
  }
  for (const std::string& huge :
       std::vector<std::string>{"1" + zeros, std::string("1e400"), "1" + zeros + "e-1",
                                std::string("1e9223372036854775807"), std::string("1e99999999999999999999")}) {
    EXPECT_EQ(through("[" + huge + "]"), "FAILED: a number too large for a double at [1] is not JSON") << huge;
  }
  EXPECT_EQ(through("[0e99999999999999999999,1" + zeros + "e-400]"), "[0.0,1.0]");
}

TEST_F(JsonBridgeTest, WrongJsonIsRefusedWithItsPlace) {
  const auto returned = [this](const std::string& value) { return once("return function() return " + value + " end"); };
  EXPECT_EQ(returned("nil"), "null");
  EXPECT_EQ(returned("{}"), "{}");
  EXPECT_EQ(returned("{1, 2}"), "[1,2]");
  EXPECT_EQ(returned("{[1.0] = 'x', [2] = 'y'}"), R"(["x","y"])");
  EXPECT_EQ(returned("{a = nil, b = json.null}"), R"({"b":null})");
  EXPECT_EQ(returned("json.array(setmetatable({}, nil))"), "[]");
  EXPECT_EQ(returned("json.array{1, json.array(), {}}"), "[1,[],{}]");
  EXPECT_EQ(returned("setmetatable({1}, {__index = error, __len = error, __pairs = error})"), "[1]");
  EXPECT_EQ(returned("{a = {[1] = 1, x = 2}}"),
            "FAILED: a table with number and string keys (write t[tostring(id)]) at .a is not JSON");
  EXPECT_EQ(returned("json.array{x = 1}"), "FAILED: an array with string keys is not JSON");
  EXPECT_EQ(
      returned("{1, nil, 3}"),
      "FAILED: an array with holes (put json.null there, or write t[tostring(id)] for an object) at [2] is not JSON");
  EXPECT_EQ(
      returned("{[0] = 1}"),
      "FAILED: an array with holes (put json.null there, or write t[tostring(id)] for an object) at [1] is not JSON");
  EXPECT_EQ(
      returned("{[1 << 60] = 1}"),
      "FAILED: an array with holes (put json.null there, or write t[tostring(id)] for an object) at [1] is not JSON");
  EXPECT_EQ(returned("{[0.5] = 1}"), "FAILED: a table with a fraction as a key (write t[tostring(id)]) is not JSON");
  EXPECT_EQ(returned("{[true] = 1}"), "FAILED: a table with a key that is a boolean is not JSON");
  EXPECT_EQ(returned("{[json.null] = 1}"), "FAILED: a table with a key that is a userdata is not JSON");
  EXPECT_EQ(returned("{0/0}"), "FAILED: nan at [1] is not JSON");
  EXPECT_EQ(returned("{x = {-1/0}}"), "FAILED: a number too large for a double at .x[1] is not JSON");
  EXPECT_EQ(returned("{x = {{y = coroutine.create(print)}}}"), "FAILED: a thread at .x[1].y is not JSON");
  EXPECT_EQ(returned("'\\xff'"), "FAILED: a string with bytes that are not UTF-8 is not JSON");
  EXPECT_EQ(returned("{['\\xed\\xa0\\x80'] = 1}").substr(0, 44), "FAILED: a string with bytes that are not UTF");
  EXPECT_EQ(returned("(function() local t = {} t[1] = t return t end)()"),
            "FAILED: the value is nested deeper than 512 levels, or contains itself");
  EXPECT_EQ(returned("('x'):rep(21 << 20)"), "FAILED: the JSON text is longer than 20 MB: return less");
}

// A long string is written in pieces of 64 KB; characters and escapes lie on the borders between pieces.
TEST_F(JsonBridgeTest, LongStringsAreWrittenWhole) {
  constexpr std::size_t kPiece = 65'536;
  for (const std::size_t before : {kPiece - 2, kPiece - 1, kPiece, 2 * kPiece - 3}) {
    std::string inside(before, 'x');
    inside += "\xf0\x9f\x98\x80\\u000a\\\"";
    EXPECT_TRUE(through("[\"" + inside + "\"]") == "[\"" + inside + "\"]") << before;
    EXPECT_TRUE(through("{\"" + inside + "\":1}") == "{\"" + inside + "\":1}") << before;
    EXPECT_EQ(once("return function() return ('x'):rep(" + std::to_string(before) + ") .. '\\xf0' end"),
              "FAILED: a string with bytes that are not UTF-8 is not JSON");
  }
}

TEST_F(JsonBridgeTest, DecodeAndEncode) {
  const auto returned = [this](const std::string& value) { return once("return function() return " + value + " end"); };
  EXPECT_EQ(returned("json.encode(json.decode('[1,{\"a\":[]}]'))"), R"("[1,{\"a\":[]}]")");
  EXPECT_EQ(returned("json.decode('5') + 1"), "6");
  EXPECT_EQ(returned("json.decode('null') == json.null and tostring(json.null)"), "\"null\"");
  EXPECT_EQ(returned("math.type(json.decode('1.0')) .. math.type(json.decode('1'))"), "\"floatinteger\"");
  EXPECT_EQ(returned("json.decode('[1,]')"),
            "FAILED: once.lua:1: not JSON: a value starts with an unexpected character (at byte 3)");
  EXPECT_EQ(returned("json.decode('')"),
            "FAILED: once.lua:1: not JSON: the text ends where a value is expected (at byte 0)");
  EXPECT_EQ(returned("#json.encode(json.decode(('['):rep(512) .. (']'):rep(512)))"), "1024");
  EXPECT_EQ(returned("json.decode(('['):rep(513) .. (']'):rep(513))"),
            "FAILED: once.lua:1: not JSON: the text is nested deeper than 512 levels (at byte 512)");
  EXPECT_EQ(returned("json.decode(5)"), "5");
  EXPECT_EQ(returned("json.decode({})"),
            "FAILED: once.lua:1: bad argument #1 to 'decode' (string expected, got table)");
  EXPECT_EQ(returned("json.encode()"), "FAILED: once.lua:1: bad argument #1 to 'encode' (value expected)");
  EXPECT_EQ(returned("json.array(setmetatable({}, {__metatable = 1}))"),
            "FAILED: once.lua:1: cannot change a protected metatable");
}

// Random JSON texts. A test compares the bridge with the C++ echo, which returns each text unchanged.
class RandomJson {
 public:
  explicit RandomJson(std::uint32_t seed) : random_(seed) {}

  std::string value(int depth = 0) {
    const unsigned kind = pick(depth > 5 ? 6 : 9);
    switch (kind) {
      case 0: return "null";
      case 1: return pick(2) == 0 ? "true" : "false";
      case 2: return integer();
      case 3:
      case 4: return real();
      case 5: return string();
      default: return compound(depth, kind % 2 == 0);
    }
  }

 private:
  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }
  std::string blank() { return std::string(pick(8) == 0 ? pick(3) : 0, " \n\t"[pick(3)]); }

  std::string integer() {
    constexpr std::int64_t kEdges[] = {
        0, 1, -1, INT64_MAX, INT64_MIN, INT64_MAX - 1, 1LL << 53, (1LL << 53) + 1, -(1LL << 31)};
    const auto any = static_cast<std::int64_t>(random_() >> pick(64));
    return std::to_string(pick(3) == 0 ? kEdges[pick(std::size(kEdges))] : any);
  }
  std::string real() {
    constexpr const char* kEdges[] = {"-0",
                                      "-0.0",
                                      "0.0",
                                      "1e308",
                                      "1.7976931348623157e308",
                                      "5e-324",
                                      "1E+2",
                                      "1e-7",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "123456789012345678901234567890",
                                      "0.1",
                                      "1.0",
                                      "100.0",
                                      "2.2250738585072011e-308",
                                      "1e0"};
    if (pick(2) == 0) return kEdges[pick(std::size(kEdges))];
    double number = 0;
    do {
      const std::uint64_t bits = random_();
      std::memcpy(&number, &bits, sizeof number);
    } while (!std::isfinite(number));
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", number);
    return text;
  }
  std::string string() {
    constexpr const char* kParts[] = {"a",
                                      "Z",
                                      " ",
                                      "\\n",
                                      "\\\"",
                                      "\\\\",
                                      "\\/",
                                      "\\u0000",
                                      "\\u001f",
                                      "\\ud83d\\ude00",
                                      "\xc3\xa4",
                                      "\xe2\x82\xac",
                                      "\xf0\x9f\x98\x80",
                                      "\\u00e4",
                                      "1",
                                      "\x7f",
                                      "\\uffff"};
    std::string text = "\"";
    for (unsigned n = pick(6); n > 0; --n) text += kParts[pick(std::size(kParts))];
    return text + "\"";
  }
  std::string compound(int depth, bool isObject) {
    std::string text(1, isObject ? '{' : '[');
    for (unsigned n = pick(6), i = 0; i < n; ++i) {
      if (i > 0) text += ",";
      text += blank();
      if (isObject) text += string() + blank() + ":" + blank();
      text += value(depth + 1) + blank();
    }
    return text + (isObject ? "}" : "]");
  }

  std::mt19937_64 random_;
};

TEST_F(JsonBridgeTest, AnyValueComesThroughLuaAsThroughTheEcho) {
  const testkit::MapConfig config;
  const PluginEnv env{config, clock, log, scripts.folder(), false, scripts.folder()};
  const auto stock = testkit::loadPlugin<HandlerFactory>(JOBQ_PLUGIN_DIR "/libjobq_handler_echo.so", "echo", env);
  const auto judge = stock->make(HandlerEnv{"the-endpoint", "w1", {}});
  for (std::uint32_t seed = 1; seed <= 4000; ++seed) {
    const std::string text = R"({"input":)" + RandomJson(seed).value() + "}";
    FakeJobContext context;
    const std::string expected = judge->run(text, context);
    ASSERT_NE(outlineOf(expected), "") << "seed " << seed << "\n" << text;
    const std::string got = through(text);
    ASSERT_EQ(outlineOf(got), outlineOf(expected)) << "seed " << seed << "\n" << text << "\n" << got;
  }
}

}  // namespace
}  // namespace jobq::lua::test

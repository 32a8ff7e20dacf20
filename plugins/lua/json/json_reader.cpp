// JSON texts as Lua values.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "jobq/json.h"
#include "json/json_bridge.h"
#include "sandbox/execution_limiter.h"

namespace jobq::lua {
namespace {

constexpr int kGuess = 4;  // members: growing a table costs more than a few free slots

// Reads a text already accepted by the JSON scanner. The next byte is therefore always allowed by the grammar.
class Reader {
 public:
  Reader(lua_State* lua, std::string_view text) : lua_(lua), limiter_(ExecutionLimiter::of(lua)), text_(text) {}

  void read() {
    skipBlanks();
    value();
  }

 private:
  char here() const { return text_[at_]; }
  void skipBlanks() {
    while (at_ < text_.size() && (here() == ' ' || here() == '\n' || here() == '\r' || here() == '\t')) ++at_;
  }

  void value() {
    const std::size_t start = at_;
    switch (here()) {
      case '{': object(); break;
      case '[': array(); break;
      case '"': string(); break;
      case 't': word(4, [this] { lua_pushboolean(lua_, 1); }); break;
      case 'f': word(5, [this] { lua_pushboolean(lua_, 0); }); break;
      case 'n': word(4, [this] { lua_pushlightuserdata(lua_, nullptr); }); break;
      default: number();
    }
    limiter_.spend(lua_, 8 + (at_ - start) / 8);
  }

  template <class Push>
  void word(std::size_t length, Push&& push) {
    push();
    at_ += length;
  }

  [[gnu::noinline]] void object() {
    luaL_checkstack(lua_, 4, "JSON is nested too deep");
    lua_createtable(lua_, 0, kGuess);
    ++at_;
    for (skipBlanks(); here() != '}'; skipBlanks()) {
      if (here() == ',') {
        ++at_;
        skipBlanks();
      }
      string();
      skipBlanks();
      ++at_;  // the colon
      skipBlanks();
      value();
      lua_rawset(lua_, -3);
    }
    ++at_;
  }

  [[gnu::noinline]] void array() {
    luaL_checkstack(lua_, 4, "JSON is nested too deep");
    lua_createtable(lua_, kGuess, 0);
    markArray(lua_, -1);
    ++at_;
    lua_Integer count = 0;
    for (skipBlanks(); here() != ']'; skipBlanks()) {
      if (here() == ',') {
        ++at_;
        skipBlanks();
      }
      value();
      lua_rawseti(lua_, -2, ++count);
    }
    ++at_;
  }

  [[gnu::noinline]] void string() {
    const std::size_t start = ++at_;
    // Most strings have no escapes, and many are long: find() examines many bytes at once.
    at_ = text_.find('"', start);
    const bool isPlain = text_.substr(start, at_ - start).find('\\') == std::string_view::npos;
    if (!isPlain) {
      for (at_ = start; here() != '"'; ++at_) {
        if (here() == '\\') ++at_;
      }
    }
    const std::string_view raw = text_.substr(start, at_ - start);
    ++at_;
    if (isPlain) {
      lua_pushlstring(lua_, raw.data(), raw.size());
    } else {
      const std::string decoded = json::decode(raw);
      lua_pushlstring(lua_, decoded.data(), decoded.size());
    }
  }

  [[gnu::noinline]] void number() {
    const char* const first = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    std::int64_t whole = 0;
    const auto [stop, error] = std::from_chars(first, end, whole);
    const bool isWhole = error == std::errc() && (stop == end || (*stop != '.' && *stop != 'e' && *stop != 'E'));
    if (isWhole && (whole != 0 || *first != '-')) {
      lua_pushinteger(lua_, whole);
      at_ += static_cast<std::size_t>(stop - first);
      return;
    }
    double real = 0;
    const auto [realStop, realError] = std::from_chars(first, end, real);
    if (realError == std::errc::result_out_of_range) real = beyond(std::string_view(first, realStop));
    lua_pushnumber(lua_, real);
    at_ += static_cast<std::size_t>(realStop - first);
  }

  // A text has fewer digits than this number, so a greater exponent decides alone. The sum of both cannot overflow.
  static constexpr std::int64_t kGreatestExponent = std::int64_t{1} << 62;

  // Decides whether a number is too large or too small for a double, because from_chars reports both alike. The decimal
  // place of the first digit that is not zero decides.
  static double beyond(std::string_view text) {
    const double sign = text.front() == '-' ? -1.0 : 1.0;
    const std::string_view digits = text.substr(0, text.find_first_of("eE"));
    const std::size_t point = std::min(digits.find('.'), digits.size());
    const std::size_t first = digits.find_first_of("123456789");
    auto place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
    if (digits.size() < text.size()) {
      std::string_view power = text.substr(digits.size() + 1);
      const bool isNegative = power.front() == '-';
      if (isNegative || power.front() == '+') power.remove_prefix(1);
      std::int64_t exponent = 0;
      const auto read = std::from_chars(power.data(), power.data() + power.size(), exponent);
      const bool isBeyondAnyPlace = read.ec != std::errc() || exponent > kGreatestExponent;
      if (isBeyondAnyPlace) return sign * (isNegative ? 0.0 : HUGE_VAL);
      place += isNegative ? -exponent : exponent;
    }
    return sign * (place > 0 ? HUGE_VAL : 0.0);
  }

  lua_State* const lua_;
  ExecutionLimiter& limiter_;
  const std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

void pushJson(lua_State* lua, std::string_view text) { Reader(lua, text).read(); }

}  // namespace jobq::lua

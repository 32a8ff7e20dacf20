#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <vector>

#include "jobq/json.h"
#include "json_bridge.h"
#include "sandbox.h"
#include "watch.h"

namespace jobq::lua {
namespace {

constexpr std::uint64_t kTableSteps = 500;  // one that was large and is empty is searched from end to end
constexpr int kDeepest = static_cast<int>(json::kMaxDepth);

class Writer {
 public:
  explicit Writer(lua_State* lua) : lua_(lua), watch_(Watch::of(lua)) {}

  std::string write(int index) {
    value(lua_absindex(lua_, index));
    return std::move(out_);
  }

 private:
  struct Step {
    std::string_view name;  // of an object's member, or
    lua_Integer index = 0;  // of an array's element
  };

  [[noreturn]] void refuse(const std::string& what) {
    throw ScriptError(what + (path_.empty() ? "" : " at " + where()) + " is not JSON");
  }

  std::string where() const {
    std::string text;
    for (const Step& step : path_) {
      text += step.index > 0 ? "[" + std::to_string(step.index) + "]" : "." + std::string(step.name.substr(0, 64));
    }
    return text.size() > 200 ? text.substr(0, 200) + "..." : text;
  }

  void value(int index) {
    const std::size_t before = out_.size();
    switch (lua_type(lua_, index)) {
      case LUA_TNIL: out_ += "null"; break;
      case LUA_TBOOLEAN: out_ += lua_toboolean(lua_, index) != 0 ? "true" : "false"; break;
      case LUA_TNUMBER: number(index); break;
      case LUA_TSTRING: string(index); break;
      case LUA_TTABLE: table(index); break;
      default:
        if (!isNull(lua_, index)) refuse("a " + std::string(luaL_typename(lua_, index)));
        out_ += "null";
    }
    if (out_.size() > kLongestJson) throw ScriptError("the JSON text is longer than 20 MB: return less");
    watch_.spend(lua_, 8 + (out_.size() - before) / 8);
  }

  void number(int index) {
    std::array<char, 32> text{};
    if (lua_isinteger(lua_, index) != 0) {
      const auto end = std::to_chars(text.begin(), text.end(), lua_tointeger(lua_, index)).ptr;
      out_.append(text.data(), end);
      return;
    }
    const double real = lua_tonumber(lua_, index);
    if (!std::isfinite(real)) refuse(std::isnan(real) ? "nan" : "a number beyond all doubles");
    const auto end = std::to_chars(text.begin(), text.end(), real).ptr;
    const std::string_view spelt(text.data(), static_cast<std::size_t>(end - text.data()));
    out_ += spelt;
    // So that it is a float when it is read again.
    if (spelt.find_first_of(".e") == std::string_view::npos) out_ += ".0";
  }

  std::string_view stringAt(int index) {
    std::size_t size = 0;
    const char* bytes = lua_tolstring(lua_, index, &size);
    return {bytes, size};
  }

  void string(int index) { quote(stringAt(index)); }

  void quote(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = json::detail::utf8Length(text.substr(at, 4));
      if (length == 0) refuse("a string with bytes that are not UTF-8");
      at += length;
    }
    json::appendQuoted(out_, text);
  }

  void table(int index) {
    if (++depth_ > kDeepest) throw ScriptError("the value is nested deeper than 512 levels, or holds itself");
    luaL_checkstack(lua_, 6, "the value is nested too deep");
    watch_.spend(lua_, kTableSteps);
    const auto [keys, names] = count(index);
    const bool marked = isMarked(lua_, index);
    if (names == 0 && (marked || keys > 0)) {
      array(index, keys);
    } else if (keys == 0 && !marked) {
      object(index, names);
    } else {
      refuse("a table with keys of both kinds");
    }
    --depth_;
  }

  struct Keys {
    lua_Integer numbers = 0;
    std::size_t names = 0;
  };

  Keys count(int index) {
    Keys keys;
    for (lua_pushnil(lua_); lua_next(lua_, index) != 0; lua_pop(lua_, 1)) {
      watch_.spend(lua_, 4);
      if (lua_isinteger(lua_, -2) != 0) {
        ++keys.numbers;
      } else if (lua_type(lua_, -2) == LUA_TSTRING) {
        ++keys.names;
      } else {
        refuse("a table with a key that is a " + std::string(luaL_typename(lua_, -2)));
      }
    }
    return keys;
  }

  void array(int index, lua_Integer size) {
    out_ += '[';
    for (lua_Integer i = 1; i <= size; ++i) {
      if (i > 1) out_ += ',';
      path_.push_back({{}, i});
      if (lua_rawgeti(lua_, index, i) == LUA_TNIL) refuse("an array with holes (put json.null there)");
      value(lua_gettop(lua_));
      lua_pop(lua_, 1);
      path_.pop_back();
    }
    out_ += ']';
  }

  // In byte order, so that the same value is the same text.
  void object(int index, std::size_t size) {
    std::vector<std::string_view> names;  // of strings that the table holds
    names.reserve(size);
    for (lua_pushnil(lua_); lua_next(lua_, index) != 0; lua_pop(lua_, 1)) names.push_back(stringAt(-2));
    watch_.spend(lua_, size * 16);
    std::sort(names.begin(), names.end());
    out_ += '{';
    for (const std::string_view name : names) {
      if (out_.back() != '{') out_ += ',';
      path_.push_back({name, 0});
      quote(name);
      out_ += ':';
      lua_pushlstring(lua_, name.data(), name.size());
      lua_rawget(lua_, index);
      value(lua_gettop(lua_));
      lua_pop(lua_, 1);
      path_.pop_back();
    }
    out_ += '}';
  }

  lua_State* const lua_;
  Watch& watch_;
  std::string out_;
  std::vector<Step> path_;
  int depth_ = 0;
};

}  // namespace

std::string toJson(lua_State* lua, int index) { return Writer(lua).write(index); }

}  // namespace jobq::lua

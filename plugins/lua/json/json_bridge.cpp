#include "json/json_bridge.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/json.h"
#include "jobq/json_writer.h"
#include "sandbox/execution_limiter.h"
#include "sandbox/hidden_names.h"
#include "sandbox/sandbox.h"

namespace jobq::lua {
namespace {

constexpr std::size_t kLongestText = 20U << 20;
constexpr std::uint64_t kTableSteps = 500;  // an emptied large table is searched from end to end
constexpr int kDeepest = static_cast<int>(json::kMaxDepth);

const char kArrayMeta = 0;  // key of the registry: the metatable of arrays

void pushNull(lua_State* lua) { lua_pushlightuserdata(lua, nullptr); }

bool isNull(lua_State* lua, int index) {
  return lua_islightuserdata(lua, index) && lua_touserdata(lua, index) == nullptr;
}

bool isMarked(lua_State* lua, int index) {
  if (lua_getmetatable(lua, index) == 0) return false;
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kArrayMeta);
  const bool same = lua_rawequal(lua, -1, -2) != 0;
  lua_pop(lua, 2);
  return same;
}

// Reads a Lua value and passes its parts to the writer of the sdk.
class Writer {
 public:
  explicit Writer(lua_State* lua) : lua_(lua), limiter_(ExecutionLimiter::of(lua)) {}

  std::string write(int index) {
    std::string out;
    value(out, lua_absindex(lua_, index));
    return out;
  }

 private:
  struct Step {
    std::string_view name;  // name of an object's member, or
    lua_Integer index = 0;  // index of an array's element
  };

  // value() may occupy the C stack 512 times, with the functions of the sdk's JSON writer between two levels, and so
  // may every function inlined into it. Code with temporaries therefore lives in functions of its own that are not
  // inlined.
  [[noreturn, gnu::noinline]] void refuse(std::string_view what) {
    throw ScriptError(std::string(what) + (path_.empty() ? "" : " at " + where()) + " is not JSON");
  }

  [[noreturn, gnu::noinline]] void refuseType(const char* what, int index) {
    refuse(std::string(what) + luaL_typename(lua_, index));
  }

  std::string where() const {
    std::string text;
    for (const Step& step : path_) {
      text += step.index > 0 ? "[" + std::to_string(step.index) + "]" : "." + std::string(step.name.substr(0, 64));
    }
    return text.size() > 200 ? text.substr(0, 200) + "..." : text;
  }

  void value(std::string& out, int index) {
    const std::size_t before = out.size();
    switch (lua_type(lua_, index)) {
      case LUA_TNIL: json::appendValue(out, nullptr); break;
      case LUA_TBOOLEAN: json::appendValue(out, lua_toboolean(lua_, index) != 0); break;
      case LUA_TNUMBER: number(out, index); break;
      case LUA_TSTRING: string(out, stringAt(index)); break;
      case LUA_TTABLE: table(out, index); break;
      default:
        if (!isNull(lua_, index)) refuseType("a ", index);
        json::appendValue(out, nullptr);
    }
    checkLength(out);
    limiter_.spend(lua_, 8 + (out.size() - before) / 8);
  }

  [[gnu::noinline]] void number(std::string& out, int index) {
    if (lua_isinteger(lua_, index) != 0) return json::appendValue(out, lua_tointeger(lua_, index));
    const double real = lua_tonumber(lua_, index);
    if (!std::isfinite(real)) refuse(std::isnan(real) ? "nan" : "a number too large for a double");
    const std::size_t begin = out.size();
    json::appendValue(out, real);
    // The suffix makes the number a float when the text is read again.
    if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
  }

  std::string_view stringAt(int index) {
    std::size_t size = 0;
    const char* bytes = lua_tolstring(lua_, index, &size);
    return {bytes, size};
  }

  // Writes in pieces: the written text takes up to six times the memory of the string, and no byte of the output counts
  // against the memory of the script.
  [[gnu::noinline]] void string(std::string& out, std::string_view text) {
    constexpr std::size_t kPiece = std::size_t{1} << 16;
    out += '"';
    for (std::size_t begin = 0; begin < text.size();) {
      std::size_t end = begin;
      while (end < text.size() && end - begin < kPiece) {
        const std::size_t length = json::detail::utf8Length(text.substr(end, 4));
        if (length == 0) refuse("a string with bytes that are not UTF-8");
        end += length;
      }
      json::appendEscaped(out, text.substr(begin, end - begin));
      begin = end;
      if (begin == text.size()) break;
      checkLength(out);
      limiter_.spend(lua_, kPiece);
    }
    out += '"';
  }

  static void checkLength(const std::string& out) {
    if (out.size() > kLongestText) throw ScriptError("the JSON text is longer than 20 MB: return less");
  }

  [[gnu::noinline]] void table(std::string& out, int index) {
    if (++depth_ > kDeepest) throw ScriptError("the value is nested deeper than 512 levels, or contains itself");
    luaL_checkstack(lua_, 6, "the value is nested too deep");
    limiter_.spend(lua_, kTableSteps);
    const auto [keys, names] = count(index);
    const bool marked = isMarked(lua_, index);
    if (names == 0 && (marked || keys > 0)) {
      array(out, index, keys);
    } else if (keys == 0 && !marked) {
      object(out, index, names);
    } else {
      refuse(marked ? "an array with string keys" : "a table with number and string keys (write t[tostring(id)])");
    }
    --depth_;
  }

  struct Keys {
    lua_Integer numbers = 0;
    std::size_t names = 0;
  };

  [[gnu::noinline]] Keys count(int index) {
    Keys keys;
    for (lua_pushnil(lua_); lua_next(lua_, index) != 0; lua_pop(lua_, 1)) {
      limiter_.spendOnLookup(lua_);
      if (isHiddenName(lua_, -2)) continue;
      if (lua_isinteger(lua_, -2) != 0) {
        ++keys.numbers;
      } else if (lua_type(lua_, -2) == LUA_TSTRING) {
        ++keys.names;
      } else {
        if (lua_type(lua_, -2) == LUA_TNUMBER) refuse("a table with a fraction as a key (write t[tostring(id)])");
        refuseType("a table with a key that is a ", -2);
      }
    }
    return keys;
  }

  [[gnu::noinline]] void array(std::string& out, int index, lua_Integer size) {
    const auto pushed = [this](std::string& to) { value(to, lua_gettop(lua_)); };
    json::appendArray(out, [&](json::ArrayWriter& elements) {
      for (lua_Integer i = 1; i <= size; ++i) {
        pushElement(index, i);
        elements.element(pushed);
        pop();
      }
    });
  }

  [[gnu::noinline]] void pushElement(int index, lua_Integer i) {
    limiter_.spendOnLookup(lua_);
    path_.push_back({{}, i});
    if (lua_rawgeti(lua_, index, i) == LUA_TNIL)
      refuse("an array with holes (put json.null there, or write t[tostring(id)] for an object)");
  }

  // Writes members in byte order, so that equal values give equal texts.
  [[gnu::noinline]] void object(std::string& out, int index, std::size_t size) {
    std::vector<std::string_view> names;  // views into strings held by the table
    listNames(index, size, names);
    const auto pushed = [this](std::string& to) { value(to, lua_gettop(lua_)); };
    json::appendObject(out, [&](json::ObjectWriter& members) {
      for (const std::string_view& name : names) {
        pushMember(name, index);
        members.namedMember([this, &name](std::string& to) { string(to, name); }, pushed);
        pop();
      }
    });
  }

  [[gnu::noinline]] void listNames(int index, std::size_t size, std::vector<std::string_view>& names) {
    names.reserve(size);
    for (lua_pushnil(lua_); lua_next(lua_, index) != 0; lua_pop(lua_, 1)) {
      limiter_.spendOnLookup(lua_);
      if (!isHiddenName(lua_, -2)) names.push_back(stringAt(-2));
    }
    limiter_.spend(lua_, size * 16);
    std::sort(names.begin(), names.end());
  }

  [[gnu::noinline]] void pushMember(std::string_view name, int index) {
    limiter_.spendOnLookup(lua_);
    path_.push_back({name, 0});
    lua_pushlstring(lua_, name.data(), name.size());
    lua_rawget(lua_, index);
  }

  [[gnu::noinline]] void pop() {
    lua_pop(lua_, 1);
    path_.pop_back();
  }

  lua_State* const lua_;
  ExecutionLimiter& limiter_;
  std::vector<Step> path_;
  int depth_ = 0;
};

int encode(lua_State* lua) {
  luaL_checkany(lua, 1);
  const std::string text = toJson(lua, 1);
  lua_pushlstring(lua, text.data(), text.size());
  return 1;
}

int decode(lua_State* lua) {
  std::size_t size = 0;
  const char* bytes = luaL_checklstring(lua, 1, &size);
  if (size > kLongestText) return luaL_error(lua, "the JSON text is longer than 20 MB: decode less");
  const auto fault = json::check({bytes, size});
  ExecutionLimiter::of(lua).spend(lua, size / 4);
  if (fault) {
    return luaL_error(lua, "not JSON: %s (at byte %I)", fault->reason, static_cast<lua_Integer>(fault->offset));
  }
  pushJson(lua, {bytes, size});
  return 1;
}

int array(lua_State* lua) {
  if (lua_isnoneornil(lua, 1)) {
    lua_settop(lua, 0);
    lua_newtable(lua);
  }
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 1);
  if (luaL_getmetafield(lua, 1, "__metatable") != LUA_TNIL && !isMarked(lua, 1)) {
    return luaL_error(lua, "cannot change a protected metatable");
  }
  lua_settop(lua, 1);
  markArray(lua, 1);
  return 1;
}

int nullText(lua_State* lua) {
  lua_pushliteral(lua, "null");
  return 1;
}

}  // namespace

void openJson(lua_State* lua) {
  lua_createtable(lua, 0, 2);
  lua_pushliteral(lua, "json.array");
  lua_setfield(lua, -2, "__metatable");
  lua_pushliteral(lua, "json.array");
  lua_setfield(lua, -2, "__name");
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kArrayMeta);

  // All light userdata share one metatable, and json.null is the only light userdata within reach of a script.
  pushNull(lua);
  lua_createtable(lua, 0, 2);
  lua_pushcfunction(lua, nullText);
  lua_setfield(lua, -2, "__tostring");
  lua_pushliteral(lua, "json.null");
  lua_setfield(lua, -2, "__metatable");
  lua_setmetatable(lua, -2);
  lua_pop(lua, 1);

  lua_createtable(lua, 0, 4);
  lua_pushcfunction(lua, guarded<encode>);
  lua_setfield(lua, -2, "encode");
  lua_pushcfunction(lua, guarded<decode>);
  lua_setfield(lua, -2, "decode");
  lua_pushcfunction(lua, guarded<array>);
  lua_setfield(lua, -2, "array");
  pushNull(lua);
  lua_setfield(lua, -2, "null");
}

const char* typeName(lua_State* lua, int index) { return isNull(lua, index) ? "json.null" : luaL_typename(lua, index); }

void markArray(lua_State* lua, int index) {
  index = lua_absindex(lua, index);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kArrayMeta);
  lua_setmetatable(lua, index);
}

std::string toJson(lua_State* lua, int index) { return Writer(lua).write(index); }

}  // namespace jobq::lua

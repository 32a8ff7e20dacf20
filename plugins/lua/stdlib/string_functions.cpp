// A string.rep with counted steps, and the other functions of the string library with their work counted.
#include <algorithm>
#include <string_view>

#include "sandbox/sandbox.h"
#include "stdlib/library.h"

namespace jobq::lua {
namespace {

int repeat(lua_State* lua) {
  std::size_t size = 0;
  std::size_t gap = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  const lua_Integer times = luaL_checkinteger(lua, 2);
  const char* separator = luaL_optlstring(lua, 3, "", &gap);
  constexpr std::size_t kLongest = std::size_t{1} << 40;
  if (times <= 0 || size + gap == 0) {
    lua_pushliteral(lua, "");
    return 1;
  }
  const auto count = static_cast<std::size_t>(times);
  if (count > kLongest / (size + gap)) return luaL_error(lua, "resulting string too large");
  const std::size_t total = count * size + (count - 1) * gap;
  luaL_Buffer buffer;
  char* to = luaL_buffinitsize(lua, &buffer, total);  // raises if `total` exceeds the script's memory
  for (std::size_t i = 0; i < count; ++i) {
    ExecutionLimiter::of(lua).spend(lua, 1 + (size + gap) / 4);
    to = std::copy_n(text, size, to);
    if (i + 1 < count) to = std::copy_n(separator, gap, to);
  }
  luaL_pushresultsize(&buffer, total);
  return 1;
}

// The format "c40000000" pads a short text with as many bytes, so the numbers of the format are counted. Upvalue: the
// stock function.
int packText(lua_State* lua) {
  std::size_t size = 0;
  const char* format = luaL_checklstring(lua, 1, &size);
  std::uint64_t steps = 1 + size + bytesOfArguments(lua) / 4;
  std::uint64_t number = 0;
  for (const char c : std::string_view(format, size)) {
    number =
        '0' <= c && c <= '9' ? std::min<std::uint64_t>(number * 10 + static_cast<std::uint64_t>(c - '0'), 1U << 30) : 0;
    steps += number;
  }
  ExecutionLimiter::of(lua).spend(lua, steps);
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

bool hasText(lua_State* lua, int index) {
  if (lua_type(lua, index) != LUA_TTABLE) return false;
  for (const char* name : {"__tostring", "__name"}) {
    if (luaL_getmetafield(lua, index, name) == LUA_TNIL) continue;
    lua_pop(lua, 1);
    return true;
  }
  return false;
}

// `%.0s` measures its whole argument and writes no byte, so one text may serve for a hundred thousand arguments. Tables
// with a text of their own are replaced by the text, which can then be measured. Upvalue: the stock function.
int format(lua_State* lua) {
  const int count = lua_gettop(lua);
  for (int i = 2; i <= count; ++i) {
    if (!hasText(lua, i)) continue;
    ExecutionLimiter::of(lua).checkDeadline(lua);
    luaL_tolstring(lua, i, nullptr);
    lua_replace(lua, i);
  }
  const std::uint64_t bytes = bytesOfArguments(lua);
  checkArguments(lua, bytes);
  ExecutionLimiter::of(lua).spend(lua, 1 + bytes / 4);
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

}  // namespace

void guardStrings(lua_State* lua) {
  lua_getfield(lua, -1, "pack");
  lua_pushcclosure(lua, packText, 1);
  lua_setfield(lua, -2, "pack");
  lua_getfield(lua, -1, "format");
  lua_pushcclosure(lua, format, 1);
  lua_setfield(lua, -2, "format");
  for (const char* name : {"byte", "char", "lower", "packsize", "reverse", "sub", "unpack", "upper"}) {
    countWork(lua, name);
  }
  lua_pushcfunction(lua, repeat);
  lua_setfield(lua, -2, "rep");
}

}  // namespace jobq::lua

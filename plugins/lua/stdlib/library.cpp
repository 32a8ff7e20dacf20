#include "stdlib/library.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "json/json_bridge.h"
#include "sandbox/environment.h"
#include "sandbox/execution_limiter.h"
#include "sandbox/sandbox.h"
#include "stdlib/pattern.h"

namespace jobq::lua {
namespace {

// Copies the named fields of the table on top to a new table. Pops the old table and pushes the new table.
void choose(lua_State* lua, std::initializer_list<const char*> names) {
  lua_createtable(lua, 0, static_cast<int>(names.size()));
  for (const char* name : names) {
    lua_getfield(lua, -2, name);
    lua_setfield(lua, -2, name);
  }
  lua_remove(lua, -2);
}

void openStrings(lua_State* lua) {
  luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 0);
  // dump would make bytecode; the pattern functions are replaced by addPatterns().
  choose(lua,
         {"byte", "char", "format", "len", "lower", "pack", "packsize", "rep", "reverse", "sub", "unpack", "upper"});
  guardStrings(lua);
  addPatterns(lua);
  // ("x"):rep(3) goes through the metatable of strings, which refers to the stock table.
  lua_pushliteral(lua, "");
  lua_getmetatable(lua, -1);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 2);
  addLibrary(lua, LUA_STRLIBNAME);
}

void openUtf8(lua_State* lua) {
  luaL_requiref(lua, LUA_UTF8LIBNAME, luaopen_utf8, 0);
  for (const char* name : {"char", "codepoint", "len", "offset"}) countWork(lua, name);
  addLibrary(lua, LUA_UTF8LIBNAME);
}

// __index of the libraries, for names that no library defines. Answers _G on demand, because few scripts use the name.
int findGlobals(lua_State* lua) {
  lua_pushliteral(lua, LUA_GNAME);
  if (lua_rawequal(lua, 2, -1) == 0) return 0;
  lua_rawgeti(lua, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  return 1;
}

void openBase(lua_State* lua) {
  luaL_requiref(lua, LUA_GNAME, luaopen_base, 0);
  choose(lua, {"_VERSION", "assert", "error", "getmetatable", "ipairs", "pcall", "rawequal", "rawget", "rawlen",
               "select", "tonumber", "tostring", "type"});
  countWork(lua, "tonumber");
  addBaseFunctions(lua);
  lua_createtable(lua, 0, 1);
  lua_pushcfunction(lua, findGlobals);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, -2);
}

// Replaces an error that is not a string by a string. The metamethods of the error are not called.
int spellError(lua_State* lua) {
  const int type = lua_type(lua, 1);
  std::string text = "the error is a " + std::string(typeName(lua, 1));
  try {
    if (type == LUA_TTABLE || type == LUA_TNUMBER) text = toJson(lua, 1);
  } catch (const ScriptError& error) {
    text += ", and " + std::string(error.what());
  }
  lua_pushlstring(lua, text.data(), std::min(text.size(), kLongestMessage));
  return 1;
}

}  // namespace

void checkArguments(lua_State* lua, std::uint64_t bytes) {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  if (bytes > kMost) luaL_error(lua, "the arguments have more than 64 MB in all: pass less at a time");
}

std::uint64_t bytesOfArguments(lua_State* lua) {
  std::uint64_t bytes = 0;
  std::uint64_t longest = 0;
  for (int i = lua_gettop(lua); i > 0; --i) {
    if (lua_type(lua, i) != LUA_TSTRING) continue;
    bytes += lua_rawlen(lua, i);
    longest = std::max<std::uint64_t>(longest, lua_rawlen(lua, i));
  }
  checkArguments(lua, bytes - longest);
  return bytes;
}

static_assert(
    LUA_VERSION_RELEASE_NUM == 50404,
    "Another release of Lua: check that the wrapped functions of lbaselib.c, lcorolib.c, lstrlib.c, ltablib.c "
    "and lutf8lib.c read no upvalue, and look for new functions that work without an end");

// A stock C function has no upvalue and finds its arguments unchanged on the stack.
void countWork(lua_State* lua, const char* name) {
  constexpr lua_CFunction kCounted = [](lua_State* state) {
    ExecutionLimiter::of(state).spend(state, 1 + bytesOfArguments(state) / 4);
    return lua_tocfunction(state, lua_upvalueindex(1))(state);
  };
  lua_getfield(lua, -1, name);
  lua_pushcclosure(lua, kCounted, 1);
  lua_setfield(lua, -2, name);
}

void openStandardLibraries(lua_State* lua) {
  openBase(lua);
  openEnvironments(lua);
  openStrings(lua);
  openTables(lua);
  addLibrary(lua, LUA_TABLIBNAME);
  luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 0);
  guardMath(lua);
  addLibrary(lua, LUA_MATHLIBNAME);
  openUtf8(lua);
  luaL_requiref(lua, LUA_COLIBNAME, luaopen_coroutine, 0);
  guardCoroutines(lua);
  addLibrary(lua, LUA_COLIBNAME);
  openJson(lua);
  addLibrary(lua, "json");
  dropEnvironment(lua);
  setErrorText(lua, guarded<spellError>);

  // requiref keeps the stock libraries in that table.
  lua_pushnil(lua);
  lua_setfield(lua, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
}

}  // namespace jobq::lua

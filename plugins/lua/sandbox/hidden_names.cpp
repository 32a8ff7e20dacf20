#include "sandbox/hidden_names.h"

#include <cstddef>
#include <string_view>

namespace jobq::lua {
namespace {

const char kCallName = 0;  // key of the registry: the name under which Lua looks for __call

static_assert(LUA_VERSION_RELEASE_NUM == 50404,
              "Another release of Lua: check that ltm.c finds metamethods by the address of their names (tmname), that "
              "the names are short strings, and that lstring.c keeps the hash of a string whose bytes have changed");

constexpr std::string_view kHiddenCall = "\n_call";

// Lua knows the names of its metamethods only by their address in memory. With other letters at the address, the name
// written by scripts is an ordinary name. Pushes the name for which Lua looks.
void hideName(lua_State* lua, const char* name) {
  lua_pushstring(lua, name);
  const_cast<char*>(lua_tostring(lua, -1))[0] = '\n';
}

// Makes every table a strong table. Weak keys let one collection take time with the square of their number, hours for a
// state of 64 MB, and no hook interrupts a collection. A check in setmetatable would not suffice, because a script may
// set __mode long afterwards.
void disableWeakTables(lua_State* lua) {
  hideName(lua, "__mode");
  lua_pop(lua, 1);
}

// Limits __call to functions. Lua looks for the function of a called table in the metatable, where a further callable
// table may lie. Lua repeats the search as long as the stack grows and moves the whole stack each time, where no hook
// fires. setmetatable copies functions, and no other values, to the name for which Lua looks.
void disableCallsOfTables(lua_State* lua) {
  hideName(lua, "__call");
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kCallName);
}

}  // namespace

void hideNames(lua_State* lua) {
  disableWeakTables(lua);
  disableCallsOfTables(lua);
}

void copyCall(lua_State* lua, int meta) {
  lua_pushliteral(lua, "__call");
  const int type = lua_rawget(lua, meta);
  if (type != LUA_TNIL && type != LUA_TFUNCTION) luaL_error(lua, "__call must be a function here");
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kCallName);
  lua_insert(lua, -2);
  lua_rawset(lua, meta);
}

bool isHiddenName(lua_State* lua, int index) {
  std::size_t size = 0;
  if (lua_type(lua, index) != LUA_TSTRING) return false;
  const char* text = lua_tolstring(lua, index, &size);
  if (std::string_view(text, size) != kHiddenCall) return false;
  index = lua_absindex(lua, index);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kCallName);
  const bool same = lua_rawequal(lua, -1, index) != 0;
  lua_pop(lua, 1);
  return same;
}

}  // namespace jobq::lua

#include "sandbox/environment.h"

namespace jobq::lua {
namespace {

static_assert(
    LUA_VERSION_RELEASE_NUM == 50404,
    "Another release of Lua: check in lapi.c how lua_load finds the globals (getGtable), and in ltable.c that "
    "the array of the registry keeps an element that is false");

// Keys of the registry, by their addresses.
const char kLibraries = 0;        // the table in which all environments look up names
const char kEnvironmentMeta = 0;  // the metatable of environments

int refuseWrite(lua_State* lua) {
  return luaL_error(lua, "the libraries cannot be changed: use a variable of your own");
}

}  // namespace

void openEnvironments(lua_State* lua) {
  lua_createtable(lua, 0, 2);
  lua_pushvalue(lua, -2);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kEnvironmentMeta);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kLibraries);
}

void pushEnvironment(lua_State* lua) {
  lua_newtable(lua);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kEnvironmentMeta);
  lua_setmetatable(lua, -2);
  lua_pushvalue(lua, -1);
  lua_rawseti(lua, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);  // globals of the code compiled by load()
}

// Stores false instead of nil: with nil the registry's array could shrink, and load() reads the globals from the array
// without checking its length.
void dropEnvironment(lua_State* lua) {
  lua_pushboolean(lua, 0);
  lua_rawseti(lua, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
}

// Scripts get an empty table that reads from the real table. rawset refuses such a table (stdlib/base_functions.cpp),
// every other write calls __newindex.
void addLibrary(lua_State* lua, const char* name) {
  lua_createtable(lua, 0, 3);
  lua_insert(lua, -2);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, refuseWrite);
  lua_setfield(lua, -2, "__newindex");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_newtable(lua);
  lua_insert(lua, -2);
  lua_setmetatable(lua, -2);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kLibraries);
  lua_insert(lua, -2);
  lua_setfield(lua, -2, name);
  lua_pop(lua, 1);
}

bool isLibrary(lua_State* lua, int index) {
  if (luaL_getmetafield(lua, index, "__newindex") == LUA_TNIL) return false;
  const bool own = lua_tocfunction(lua, -1) == refuseWrite;
  lua_pop(lua, 1);
  return own;
}

}  // namespace jobq::lua

// The functions setmetatable, rawset, xpcall, load, next, pairs and print in versions safe for a sandbox.
#include <algorithm>

#include "sandbox/environment.h"
#include "sandbox/hidden_names.h"
#include "sandbox/sandbox.h"
#include "sandbox/text_loader.h"
#include "stdlib/library.h"

namespace jobq::lua {
namespace {

// Finalizers run where no hook fires, so a looping finalizer would never be stopped. A `__gc` added to the metatable
// later is no finalizer: Lua reads the field only in setmetatable.
int setMetatable(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const int type = lua_type(lua, 2);
  luaL_argexpected(lua, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table");
  if (luaL_getmetafield(lua, 1, "__metatable") != LUA_TNIL) {
    return luaL_error(lua, "cannot change a protected metatable");
  }
  lua_settop(lua, 2);
  if (type == LUA_TTABLE) {
    lua_pushliteral(lua, "__gc");
    if (lua_rawget(lua, 2) != LUA_TNIL) return luaL_error(lua, "__gc is not available to scripts: use __close");
    copyCall(lua, 2);
  }
  lua_settop(lua, 2);
  lua_setmetatable(lua, 1);
  return 1;
}

// Stock rawset would bypass the protection of the libraries.
int rawSet(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checkany(lua, 2);
  luaL_checkany(lua, 3);
  lua_settop(lua, 3);
  if (isLibrary(lua, 1)) return luaL_error(lua, "the libraries cannot be changed: use a variable of your own");
  lua_settop(lua, 3);
  ExecutionLimiter::of(lua).spend(lua, 4);
  lua_rawset(lua, 1);
  return 1;
}

int endXpcall(lua_State* lua, int status, lua_KContext) {
  if (status == LUA_OK || status == LUA_YIELD) {  // 1: the handler; the results follow
    lua_pushboolean(lua, 1);
    lua_replace(lua, 1);
    return lua_gettop(lua);
  }
  // Stock Lua calls the handler at the place of the error, with hooks off.
  lua_pushvalue(lua, 1);
  lua_insert(lua, -2);
  constexpr lua_KFunction kAfter = [](lua_State* state, int, lua_KContext) {
    lua_pushboolean(state, 0);
    lua_insert(state, -2);
    return 2;
  };
  // An error in the handler becomes the result, as in stock Lua.
  return kAfter(lua, lua_pcallk(lua, 1, 1, 0, 0, kAfter), 0);
}

int xpcall(lua_State* lua) {
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  lua_pushvalue(lua, 1);
  lua_remove(lua, 1);
  lua_insert(lua, 2);  // handler, function, arguments
  return endXpcall(lua, lua_pcallk(lua, lua_gettop(lua) - 2, LUA_MULTRET, 0, 0, endXpcall), 0);
}

// Behaves like the stock function, with its work counted. In a large, emptied table the stock function searches every
// slot, and C functions and metamethods can be made to call next where no hook fires.
int next(lua_State* lua) {
  constexpr std::uint64_t kSteps = 500;  // work in a table of less than a megabyte
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 2);
  ExecutionLimiter& limiter = ExecutionLimiter::of(lua);
  limiter.spend(lua, kSteps + limiter.largest() / 64);
  while (lua_next(lua, 1) != 0) {
    if (!isHiddenName(lua, -2)) return 2;
    lua_pop(lua, 1);
  }
  lua_pushnil(lua);
  return 1;
}

// Stock pairs would hand out the stock next.
int pairs(lua_State* lua) {
  luaL_checkany(lua, 1);
  if (luaL_getmetafield(lua, 1, "__pairs") == LUA_TNIL) {
    lua_pushcfunction(lua, next);
    lua_pushvalue(lua, 1);
    lua_pushnil(lua);
    return 3;
  }
  lua_pushvalue(lua, 1);
  constexpr lua_KFunction kAfter = [](lua_State*, int, lua_KContext) { return 3; };
  lua_callk(lua, 1, 3, 0, kAfter);
  return 3;
}

// load(text [, name [, mode [, environment]]]). Bytecode is never accepted, because bytecode can crash the process.
int load(lua_State* lua) {
  std::size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  const char* name = luaL_optstring(lua, 2, "=(load)");
  const bool hasEnvironment = !lua_isnone(lua, 4);
  if (loadText(lua, {text, size}, name) != LUA_OK) {
    lua_pushnil(lua);
    lua_insert(lua, -2);
    return 2;
  }
  if (hasEnvironment) {
    lua_pushvalue(lua, 4);
    if (lua_setupvalue(lua, -2, 1) == nullptr) lua_pop(lua, 1);
  }
  return 1;
}

}  // namespace

int printLine(lua_State* lua) {
  std::string line;
  const int count = lua_gettop(lua);
  for (int i = 1; i <= count; ++i) {
    std::size_t size = 0;
    const char* text = luaL_tolstring(lua, i, &size);
    ExecutionLimiter::of(lua).spend(lua, 1 + size);
    if (line.size() + size > (std::size_t{1} << 20)) return luaL_error(lua, "a line is longer than 1 MB: print less");
    line.append(i > 1 ? "\t" : "").append(text, size);
    lua_pop(lua, 1);
  }
  Sandbox::of(lua).print(line);
  return 0;
}

void addBaseFunctions(lua_State* lua) {
  constexpr luaL_Reg kFunctions[] = {{"setmetatable", setMetatable},
                                     {"rawset", rawSet},
                                     {"xpcall", xpcall},
                                     {"load", load},
                                     {"next", next},
                                     {"pairs", pairs},
                                     {"print", guarded<printLine>},
                                     {nullptr, nullptr}};
  luaL_setfuncs(lua, kFunctions, 0);
}

}  // namespace jobq::lua

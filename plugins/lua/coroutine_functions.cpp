// coroutine.create and coroutine.wrap whose bodies end in a protected call: a thread that an error has killed holds no
// variable that is still to be closed, because Lua would close it with hooks off.
#include "library.h"
#include "sandbox.h"

namespace jobq::lua {
namespace {

int endBody(lua_State* lua, int status, lua_KContext) {
  return status == LUA_OK || status == LUA_YIELD ? lua_gettop(lua) : lua_error(lua);
}

int body(lua_State* lua) {
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  return endBody(lua, lua_pcallk(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0, 0, endBody), 0);
}

int create(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  lua_State* thread = lua_newthread(lua);
  lua_pushvalue(lua, 1);
  lua_pushcclosure(lua, body, 1);
  lua_xmove(lua, thread, 1);
  return 1;
}

int resumeWrapped(lua_State* lua) {
  lua_State* thread = lua_tothread(lua, lua_upvalueindex(1));
  const int given = lua_gettop(lua);
  if (lua_status(thread) == LUA_OK && lua_gettop(thread) == 0) return luaL_error(lua, "cannot resume dead coroutine");
  if (lua_checkstack(thread, given) == 0) return luaL_error(lua, "too many arguments to resume");
  lua_xmove(lua, thread, given);
  int results = 0;
  const int status = lua_resume(thread, lua, given, &results);
  if (status == LUA_OK || status == LUA_YIELD) {
    luaL_checkstack(lua, results + 1, "too many results to resume");
    lua_xmove(thread, lua, results);
    return results;
  }
  lua_xmove(thread, lua, 1);
  if (status != LUA_ERRMEM && lua_type(lua, -1) == LUA_TSTRING) {
    luaL_where(lua, 1);
    lua_insert(lua, -2);
    lua_concat(lua, 2);
  }
  return lua_error(lua);
}

int wrap(lua_State* lua) {
  create(lua);
  lua_pushcclosure(lua, resumeWrapped, 1);
  return 1;
}

}  // namespace

void guardCoroutines(lua_State* lua) {
  constexpr luaL_Reg kFunctions[] = {{"create", create}, {"wrap", wrap}, {nullptr, nullptr}};
  luaL_setfuncs(lua, kFunctions, 0);
}

}  // namespace jobq::lua

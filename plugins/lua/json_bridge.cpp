#include "json_bridge.h"

#include "jobq/json.h"
#include "sandbox.h"
#include "watch.h"

namespace jobq::lua {
namespace {

const char kArrayMeta = 0;  // a key of the registry: the metatable of arrays

int encode(lua_State* lua) {
  luaL_checkany(lua, 1);
  const std::string text = toJson(lua, 1);
  lua_pushlstring(lua, text.data(), text.size());
  return 1;
}

int decode(lua_State* lua) {
  std::size_t size = 0;
  const char* bytes = luaL_checklstring(lua, 1, &size);
  // The scanner lists the outermost elements, in memory that no limit of the script counts.
  if (size > kLongestJson) return luaL_error(lua, "the JSON text is longer than 20 MB: decode less");
  const auto result = json::read({bytes, size});
  Watch::of(lua).spend(lua, size / 4);
  if (const auto* fault = std::get_if<json::Fault>(&result)) {
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

void pushNull(lua_State* lua) { lua_pushlightuserdata(lua, nullptr); }

bool isNull(lua_State* lua, int index) {
  return lua_islightuserdata(lua, index) && lua_touserdata(lua, index) == nullptr;
}

void markArray(lua_State* lua, int index) {
  index = lua_absindex(lua, index);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kArrayMeta);
  lua_setmetatable(lua, index);
}

bool isMarked(lua_State* lua, int index) {
  if (lua_getmetatable(lua, index) == 0) return false;
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kArrayMeta);
  const bool same = lua_rawequal(lua, -1, -2) != 0;
  lua_pop(lua, 2);
  return same;
}

void openJson(lua_State* lua) {
  lua_createtable(lua, 0, 2);
  lua_pushliteral(lua, "json.array");
  lua_setfield(lua, -2, "__metatable");
  lua_pushliteral(lua, "json.array");
  lua_setfield(lua, -2, "__name");
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kArrayMeta);

  // All light userdata share one metatable; json.null is the only one that a script meets.
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

}  // namespace jobq::lua

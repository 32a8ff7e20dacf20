// The table library with every element counted. Lengths and elements may come from metamethods, so a script could make
// the stock functions run for ever in places where no hook fires.
#include <algorithm>

#include "sandbox/sandbox.h"
#include "stdlib/library.h"

namespace jobq::lua {
namespace {

// Called before each element of the table at `index`. A metatable may answer with a chain of a thousand tables or with
// a C function, and no hook fires in either, so every element of such a table checks the deadline.
void step(lua_State* lua, int index) {
  ExecutionLimiter& limiter = ExecutionLimiter::of(lua);
  if (lua_getmetatable(lua, index) == 0) {
    limiter.spendOnLookup(lua);
  } else {
    lua_pop(lua, 1);
    limiter.checkDeadline(lua);
  }
}

lua_Integer lengthOf(lua_State* lua, int index) {
  luaL_checktype(lua, index, LUA_TTABLE);
  return luaL_len(lua, index);
}

int insert(lua_State* lua) {
  const auto end = static_cast<lua_Integer>(static_cast<lua_Unsigned>(lengthOf(lua, 1)) + 1);
  step(lua, 1);
  switch (lua_gettop(lua)) {
    case 2: lua_seti(lua, 1, end); return 0;
    case 3: break;
    default: return luaL_error(lua, "wrong number of arguments to 'insert'");
  }
  const lua_Integer at = luaL_checkinteger(lua, 2);
  luaL_argcheck(lua, static_cast<lua_Unsigned>(at) - 1U < static_cast<lua_Unsigned>(end), 2, "position out of bounds");
  for (lua_Integer i = end; i > at; --i) {
    step(lua, 1);
    lua_geti(lua, 1, i - 1);
    lua_seti(lua, 1, i);
  }
  lua_seti(lua, 1, at);
  return 0;
}

int remove(lua_State* lua) {
  const lua_Integer size = lengthOf(lua, 1);
  lua_Integer at = luaL_optinteger(lua, 2, size);
  luaL_argcheck(lua, at == size || (at >= 1 && at - 1 <= size), 2, "position out of bounds");
  lua_geti(lua, 1, at);
  for (; at < size; ++at) {
    step(lua, 1);
    lua_geti(lua, 1, at + 1);
    lua_seti(lua, 1, at);
  }
  lua_pushnil(lua);
  lua_seti(lua, 1, at);
  return 1;
}

void addElement(lua_State* lua, luaL_Buffer* buffer, lua_Integer i) {
  step(lua, 1);
  lua_geti(lua, 1, i);
  if (lua_isstring(lua, -1) == 0) {
    luaL_error(lua, "invalid value (%s) at index %I in table for 'concat'", luaL_typename(lua, -1),
               static_cast<LUAI_UACINT>(i));
  }
  ExecutionLimiter::of(lua).spend(lua, lua_rawlen(lua, -1) / 4);
  luaL_addvalue(buffer);
}

int concat(lua_State* lua) {
  const lua_Integer size = lengthOf(lua, 1);
  std::size_t gap = 0;
  const char* separator = luaL_optlstring(lua, 2, "", &gap);
  lua_Integer i = luaL_optinteger(lua, 3, 1);
  const lua_Integer last = luaL_optinteger(lua, 4, size);
  luaL_Buffer buffer;
  luaL_buffinit(lua, &buffer);
  for (; i < last; ++i) {
    addElement(lua, &buffer, i);
    luaL_addlstring(&buffer, separator, gap);
  }
  if (i == last) addElement(lua, &buffer, i);
  luaL_pushresult(&buffer);
  return 1;
}

int pack(lua_State* lua) {
  const int count = lua_gettop(lua);
  lua_createtable(lua, count, 1);
  lua_insert(lua, 1);
  for (int i = count; i >= 1; --i) lua_seti(lua, 1, i);
  lua_pushinteger(lua, count);
  lua_setfield(lua, 1, "n");
  return 1;
}

int unpack(lua_State* lua) {
  const lua_Integer first = luaL_optinteger(lua, 2, 1);
  const lua_Integer last = lua_isnoneornil(lua, 3) ? luaL_len(lua, 1) : luaL_checkinteger(lua, 3);
  if (first > last) return 0;
  const lua_Unsigned more = static_cast<lua_Unsigned>(last) - static_cast<lua_Unsigned>(first);
  if (more >= 1'000'000 || lua_checkstack(lua, static_cast<int>(more) + 1) == 0) {
    return luaL_error(lua, "too many results to unpack");
  }
  for (lua_Integer i = first; i < last; ++i) {
    step(lua, 1);
    lua_geti(lua, 1, i);
  }
  lua_geti(lua, 1, last);
  return static_cast<int>(more) + 1;
}

int move(lua_State* lua) {
  const lua_Integer from = luaL_checkinteger(lua, 2);
  const lua_Integer end = luaL_checkinteger(lua, 3);
  const lua_Integer to = luaL_checkinteger(lua, 4);
  const int target = lua_isnoneornil(lua, 5) ? 1 : 5;
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checktype(lua, target, LUA_TTABLE);
  if (end >= from) {
    luaL_argcheck(lua, from > 0 || end < LUA_MAXINTEGER + from, 3, "too many elements to move");
    const lua_Integer count = end - from + 1;
    luaL_argcheck(lua, to <= LUA_MAXINTEGER - count + 1, 4, "destination wrap around");
    const bool overlaps = to > from && to <= end && (target == 1 || lua_compare(lua, 1, target, LUA_OPEQ) != 0);
    for (lua_Integer n = 0; n < count; ++n) {
      const lua_Integer i = overlaps ? count - 1 - n : n;  // the last first, so that no element is overwritten unread
      step(lua, 1);
      step(lua, target);
      lua_geti(lua, 1, from + i);
      lua_seti(lua, target, to + i);
    }
  }
  lua_pushvalue(lua, target);
  return 1;
}

// Upvalues: the script's own order, or nil for `<`; a flag for a metatable, which may answer at each step.
int isBefore(lua_State* lua) {
  std::uint64_t work = 4;
  if (lua_type(lua, 1) == LUA_TSTRING && lua_type(lua, 2) == LUA_TSTRING) {
    work += std::min(lua_rawlen(lua, 1), lua_rawlen(lua, 2)) / 16;
  }
  // The hook covers functions written in Lua.
  const bool hasOrder = !lua_isnil(lua, lua_upvalueindex(1));
  const bool mayAnswer = lua_toboolean(lua, lua_upvalueindex(2)) != 0;
  if (mayAnswer ||
      (hasOrder ? lua_iscfunction(lua, lua_upvalueindex(1)) != 0 : lua_istable(lua, 1) || lua_istable(lua, 2))) {
    ExecutionLimiter::of(lua).checkDeadline(lua);
  } else {
    ExecutionLimiter::of(lua).spend(lua, work);
  }
  if (lua_isnil(lua, lua_upvalueindex(1))) {
    lua_pushboolean(lua, lua_compare(lua, 1, 2, LUA_OPLT));
    return 1;
  }
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, 2, 1);
  return 1;
}

// Upvalue: the stock function. The stock function calls isBefore at least as often as any other operation.
int sort(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  if (!lua_isnoneornil(lua, 2)) luaL_checktype(lua, 2, LUA_TFUNCTION);
  lua_settop(lua, 2);
  const int hasMeta = lua_getmetatable(lua, 1);
  if (hasMeta != 0) lua_pop(lua, 1);
  lua_pushboolean(lua, hasMeta);
  lua_pushcclosure(lua, isBefore, 2);
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

}  // namespace

void openTables(lua_State* lua) {
  constexpr luaL_Reg kFunctions[] = {{"insert", insert}, {"remove", remove}, {"concat", concat}, {"pack", pack},
                                     {"unpack", unpack}, {"move", move},     {nullptr, nullptr}};
  luaL_newlib(lua, kFunctions);
  luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 0);
  lua_getfield(lua, -1, "sort");
  lua_remove(lua, -2);
  lua_pushcclosure(lua, sort, 1);
  lua_setfield(lua, -2, "sort");
}

}  // namespace jobq::lua

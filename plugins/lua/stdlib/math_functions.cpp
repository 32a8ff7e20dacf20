// The math library with its work counted, and random numbers that are seeded anew for each script.
#include "sandbox/sandbox.h"
#include "stdlib/library.h"

namespace jobq::lua {
namespace {

static_assert(
    LUA_VERSION_RELEASE_NUM == 50404,
    "Another release of Lua: check in lmathlib.c that the first upvalue of math.random is the generator, that "
    "math.randomseed changes the same object, and that the wrapped functions have no upvalue");

// math.random. Upvalues: the generator, where the stock function looks for it; the stock function; math.randomseed. The
// first call of each script seeds anew, so numbers given to one script reveal no number of the next script.
int drawNumber(lua_State* lua) {
  Sandbox& sandbox = Sandbox::of(lua);
  if (!sandbox.isSeeded()) {
    lua_pushvalue(lua, lua_upvalueindex(3));
    lua_pushinteger(lua, sandbox.nextSeed());
    lua_pushinteger(lua, sandbox.nextSeed());
    lua_call(lua, 2, 0);
    sandbox.setSeeded();  // after the call, because a script can make the call fail
  }
  return lua_tocfunction(lua, lua_upvalueindex(2))(lua);
}

enum class Choice { least, most };

// math.min and math.max. Comparing texts may take milliseconds, and a metatable may answer with any C function. A
// single call may have a million arguments.
template <Choice kChoice>
int chooseNumber(lua_State* lua) {
  const int count = lua_gettop(lua);
  luaL_argcheck(lua, count >= 1, 1, "value expected");
  ExecutionLimiter& limiter = ExecutionLimiter::of(lua);
  int chosen = 1;
  for (int i = 2; i <= count; ++i) {
    if (lua_type(lua, i) == LUA_TNUMBER && lua_type(lua, chosen) == LUA_TNUMBER) {
      limiter.spend(lua, 2);
    } else {
      limiter.checkDeadline(lua);
    }
    if (kChoice == Choice::least ? lua_compare(lua, i, chosen, LUA_OPLT) : lua_compare(lua, chosen, i, LUA_OPLT))
      chosen = i;
  }
  lua_pushvalue(lua, chosen);
  return 1;
}

}  // namespace

void guardMath(lua_State* lua) {
  lua_getfield(lua, -1, "random");
  lua_getupvalue(lua, -1, 1);
  lua_insert(lua, -2);
  lua_getfield(lua, -3, "randomseed");
  lua_pushcclosure(lua, drawNumber, 3);
  lua_setfield(lua, -2, "random");
  for (const char* name : {"abs", "acos", "asin", "atan", "ceil", "cos", "deg", "exp", "floor", "fmod", "log", "modf",
                           "rad", "sin", "sqrt", "tan", "tointeger", "ult"}) {
    countWork(lua, name);
  }
  lua_pushcfunction(lua, chooseNumber<Choice::least>);
  lua_setfield(lua, -2, "min");
  lua_pushcfunction(lua, chooseNumber<Choice::most>);
  lua_setfield(lua, -2, "max");
  // A script that chose the numbers would choose the numbers of the next script too.
  lua_pushnil(lua);
  lua_setfield(lua, -2, "randomseed");
}

}  // namespace jobq::lua

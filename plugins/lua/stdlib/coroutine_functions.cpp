// The coroutines of the sandbox. Each body ends in a protected call. Otherwise a thread killed by an error would hold
// variables still to be closed, and Lua would close the variables with hooks off. The ExecutionLimiter is told about
// each change of the running coroutine.
#include "sandbox/sandbox.h"
#include "stdlib/library.h"

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
  constexpr std::uint64_t kSteps = 2'000;  // price of a state, a stack and their collection
  ExecutionLimiter::of(lua).spend(lua, kSteps);
  lua_State* thread = lua_newthread(lua);
  lua_pushvalue(lua, 1);
  lua_pushcclosure(lua, body, 1);
  lua_xmove(lua, thread, 1);
  return 1;
}

// Resumes `thread` with the `given` arguments on top of the stack of `lua`, and pushes the results there. Returns false
// if the single result is an error.
bool advance(lua_State* lua, lua_State* thread, int given, int* results) {
  *results = 1;
  if (lua_checkstack(thread, given) == 0) {
    lua_pushliteral(lua, "too many arguments to resume");
    return false;
  }
  lua_xmove(lua, thread, given);
  ExecutionLimiter& limiter = ExecutionLimiter::of(lua);
  // Each coroutine has instructions of its own before its hook fires. Without a check here many coroutines, each
  // resumed once, would never meet a hook.
  limiter.checkDeadline(lua);
  limiter.enter(thread);
  const int status = lua_resume(thread, lua, given, results);
  limiter.enter(lua);
  const bool good = status == LUA_OK || status == LUA_YIELD;
  if (!good) *results = 1;
  if (good && lua_checkstack(lua, *results + 1) == 0) {
    lua_pop(thread, *results);
    *results = 1;
    lua_pushliteral(lua, "too many results to resume");
    return false;
  }
  lua_xmove(thread, lua, *results);
  return good;
}

lua_State* checkThread(lua_State* lua) {
  lua_State* thread = lua_tothread(lua, 1);
  luaL_argexpected(lua, thread != nullptr, 1, "thread");
  return thread;
}

int resume(lua_State* lua) {
  int results = 0;
  const bool good = advance(lua, checkThread(lua), lua_gettop(lua) - 1, &results);
  lua_pushboolean(lua, good ? 1 : 0);
  lua_insert(lua, -(results + 1));
  return results + 1;
}

int resumeWrapped(lua_State* lua) {
  lua_State* thread = lua_tothread(lua, lua_upvalueindex(1));
  int results = 0;
  if (advance(lua, thread, lua_gettop(lua), &results)) return results;
  if (lua_status(thread) != LUA_ERRMEM && lua_type(lua, -1) == LUA_TSTRING) {
    luaL_where(lua, 1);
    lua_insert(lua, -2);
    lua_concat(lua, 2);
  }
  return lua_error(lua);
}

// Upvalue: the stock function. Lua counts the nested calls of a closed coroutine from the place of its last resume. A
// chain of coroutines, each closed by the preceding coroutine, would therefore overflow the C stack.
int close(lua_State* lua) {
  lua_State* thread = checkThread(lua);
  ExecutionLimiter& limiter = ExecutionLimiter::of(lua);
  if (!limiter.hasStackLeft()) return luaL_error(lua, "C stack overflow: too many coroutines close one another");
  struct Entered {
    ExecutionLimiter& limiter;
    lua_State* back;
    ~Entered() { limiter.enter(back); }
  } const entered{limiter, lua};
  limiter.enter(thread);
  return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

int wrap(lua_State* lua) {
  create(lua);
  lua_pushcclosure(lua, resumeWrapped, 1);
  return 1;
}

}  // namespace

void guardCoroutines(lua_State* lua) {
  lua_getfield(lua, -1, "close");
  lua_pushcclosure(lua, close, 1);
  lua_setfield(lua, -2, "close");
  constexpr luaL_Reg kFunctions[] = {{"create", create}, {"resume", resume}, {"wrap", wrap}, {nullptr, nullptr}};
  luaL_setfuncs(lua, kFunctions, 0);
}

}  // namespace jobq::lua

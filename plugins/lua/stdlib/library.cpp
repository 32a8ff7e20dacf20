#include "stdlib/library.h"

#include <algorithm>
#include <initializer_list>

#include "json/json_bridge.h"
#include "sandbox/sandbox.h"
#include "stdlib/pattern.h"

namespace jobq::lua {
namespace {

// Keys of the registry, by their addresses.
const char kLibraries = 0;        // the table in which all environments look up names
const char kEnvironmentMeta = 0;  // the metatable of environments
const char kCallName = 0;         // the name under which Lua looks for __call

constexpr std::string_view kHiddenCall = "\n_call";

int refuseWrite(lua_State* lua) {
  return luaL_error(lua, "the libraries cannot be changed: use a variable of your own");
}

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

void openMath(lua_State* lua) {
  luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 0);
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
  addLibrary(lua, LUA_MATHLIBNAME);
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

// Scripts get an empty table that reads from the real table. rawset refuses such a table (base_functions.cpp), every
// other write calls __newindex.
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

void openLibraries(lua_State* lua) {
  disableWeakTables(lua);
  disableCallsOfTables(lua);
  openBase(lua);
  lua_createtable(lua, 0, 2);
  lua_pushvalue(lua, -2);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kEnvironmentMeta);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kLibraries);

  openStrings(lua);
  openTables(lua);
  addLibrary(lua, LUA_TABLIBNAME);
  openMath(lua);
  openUtf8(lua);
  luaL_requiref(lua, LUA_COLIBNAME, luaopen_coroutine, 0);
  guardCoroutines(lua);
  addLibrary(lua, LUA_COLIBNAME);
  openJson(lua);
  addLibrary(lua, "json");
  dropEnvironment(lua);

  // requiref keeps the stock libraries in that table.
  lua_pushnil(lua);
  lua_setfield(lua, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
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

}  // namespace jobq::lua

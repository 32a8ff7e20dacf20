// The libraries of scripts: Lua's own libraries without the functions that reach outside, with uninterruptible
// functions replaced by interruptible versions, and json. Libraries are read-only, so that no script can change them
// for the next script. All functions run on the thread of the state.
#pragma once

#include <cstdint>
#include <lua.hpp>
#include <string_view>

namespace jobq::lua {

/// Installs all libraries in the state. Called once per state.
void openLibraries(lua_State* lua);

/// Pushes a fresh environment, empty except for the libraries: the globals of one script.
void pushEnvironment(lua_State* lua);

/// Drops the reference to the last environment.
void dropEnvironment(lua_State* lua);

/// Pops the table on top of the stack and adds it, read-only, to the libraries under `name`.
void addLibrary(lua_State* lua, const char* name);

/// Returns true if the value at `index` is a library made by addLibrary().
bool isLibrary(lua_State* lua, int index);

/// Copies `__call` of the metatable at `meta` to the hidden name from which Lua calls tables. Raises a Lua error if
/// `__call` is neither nil nor a function.
void copyCall(lua_State* lua, int meta);

/// Returns true if the value at `index` is the hidden name used by copyCall(). No script ever gets hold of the name.
bool isHiddenName(lua_State* lua, int index);

// base_functions.cpp: sets its functions in the table on top of the stack.
void addBaseFunctions(lua_State* lua);
/// Compiles `text` like lua_load, interruptible by the ExecutionLimiter. Returns the status of lua_load.
int loadText(lua_State* lua, std::string_view text, const char* name);
/// print(...). Throws C++ exceptions and is therefore called through guarded() (sandbox.h).
int printLine(lua_State* lua);
// coroutine_functions.cpp: replaces functions in the table of the stock library, which is on top of the stack.
void guardCoroutines(lua_State* lua);
// string_functions.cpp: replaces functions in the table on top of the stack.
void guardStrings(lua_State* lua);
// table_functions.cpp: pushes the table of the library.
void openTables(lua_State* lua);

/// Returns the bytes of all strings among the arguments of a C function. Raises a Lua error if the strings besides the
/// longest have more than 64 MB: one string can be passed many times and would be read each time without interruption.
std::uint64_t bytesOfArguments(lua_State* lua);

/// Raises a Lua error if `bytes` is more than 64 MB.
void checkArguments(lua_State* lua, std::uint64_t bytes);

/// Wraps the stock function `name` in the table on top of the stack, so that its work is counted by the lengths of its
/// arguments.
void countWork(lua_State* lua, const char* name);

}  // namespace jobq::lua

// The libraries of scripts: Lua's own libraries without the functions that reach outside, with uninterruptible
// functions replaced by interruptible versions, and json. All functions run on the thread of the state.
#pragma once

#include <cstdint>
#include <lua.hpp>

namespace jobq::lua {

/// Installs the libraries of every script. Called once per state, by each LibraryOpener, before the libraries of one
/// kind of script.
void openStandardLibraries(lua_State* lua);

// base_functions.cpp: sets its functions in the table on top of the stack.
void addBaseFunctions(lua_State* lua);
/// print(...). Throws C++ exceptions and is therefore called through guarded() (sandbox/sandbox.h).
int printLine(lua_State* lua);
// coroutine_functions.cpp: replaces functions in the table of the stock library, which is on top of the stack.
void guardCoroutines(lua_State* lua);
// math_functions.cpp: replaces functions in the table of the stock library, which is on top of the stack.
void guardMath(lua_State* lua);
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

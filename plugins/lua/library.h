// What a script may use: Lua's own libraries without those that reach outside, with the functions that nothing could
// stop replaced by ones that can be, and json. Libraries are read-only, so that no script can change them for the next.
#pragma once

#include <cstdint>
#include <lua.hpp>
#include <string_view>

namespace jobq::lua {

/// Once per state.
void openLibraries(lua_State* lua);

/// Pushes an environment that is empty but for the libraries: the globals of one script.
void pushEnvironment(lua_State* lua);

/// The last environment is nobody's any more.
void dropEnvironment(lua_State* lua);

/// Puts the table on top of the stack, read-only, into the libraries under `name`; pops it.
void addLibrary(lua_State* lua, const char* name);

/// Whether the value at `index` is one of those.
bool isLibrary(lua_State* lua, int index);

/// Of the metatable at `meta`: calls of its tables go to its `__call`, or to nothing. Raises when that is no function.
void copyCall(lua_State* lua, int meta);

/// Whether the value at `index` is the name under which copyCall() keeps it: no script ever gets hold of it.
bool isHiddenName(lua_State* lua, int index);

// base_functions.cpp: sets its functions in the table on top of the stack.
void addBaseFunctions(lua_State* lua);
/// lua_load of a text, under the watch.
int loadText(lua_State* lua, std::string_view text, const char* name);
/// print(...). Throws: call it guarded (sandbox.h).
int printLine(lua_State* lua);
// coroutine_functions.cpp: the table of the stock library is on top; its functions are replaced in it.
void guardCoroutines(lua_State* lua);
// string_functions.cpp
void guardStrings(lua_State* lua);
// table_functions.cpp: pushes a table.
void openTables(lua_State* lua);

/// Of all texts among the arguments of a C function. Raises when those besides the longest have more than 64 MB: one
/// text can be there many times, and be read each time where nothing interrupts it.
std::uint64_t bytesOfArguments(lua_State* lua);

/// Raises when that is more than 64 MB.
void checkArguments(lua_State* lua, std::uint64_t bytes);

/// Wraps the stock function of that name in the table on top: its work is counted by the lengths of its arguments.
void countWork(lua_State* lua, const char* name);

}  // namespace jobq::lua

// The globals of scripts: each script gets an empty environment that reads from the libraries. The libraries are
// read-only, so that no script can change them for the next script. All functions run on the thread of the state.
#pragma once

#include <lua.hpp>

namespace jobq::lua {

/// Pops the table on top of the stack and makes it the table in which all environments look up names. Called once per
/// state, before any other function of this file.
void openEnvironments(lua_State* lua);

/// Pushes a fresh environment, empty except for the libraries: the globals of one script.
void pushEnvironment(lua_State* lua);

/// Drops the reference to the last environment.
void dropEnvironment(lua_State* lua);

/// Pops the table on top of the stack and adds it, read-only, to the libraries under `name`.
void addLibrary(lua_State* lua, const char* name);

/// Returns true if the value at `index` is a library made by addLibrary().
bool isLibrary(lua_State* lua, int index);

}  // namespace jobq::lua

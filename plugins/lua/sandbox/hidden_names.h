// Names under which Lua finds metamethods, hidden from scripts: no table of a script is weak, and no table is called
// through a chain of tables. All functions run on the thread of the state.
#pragma once

#include <lua.hpp>

namespace jobq::lua {

/// Hides the names in the state. Called once per state, before any library is opened.
void hideNames(lua_State* lua);

/// Copies `__call` of the metatable at `meta` to the hidden name from which Lua calls tables. Raises a Lua error if
/// `__call` is neither nil nor a function.
void copyCall(lua_State* lua, int meta);

/// Returns true if the value at `index` is the hidden name used by copyCall(). No script ever gets hold of the name.
bool isHiddenName(lua_State* lua, int index);

}  // namespace jobq::lua

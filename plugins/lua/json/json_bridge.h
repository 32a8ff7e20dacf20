// Converts JSON texts to Lua values and back. Objects become plain tables. Arrays become tables marked by json.array,
// so that an empty array stays an array. null becomes json.null. Integers that fit 64 bits stay exact, other numbers
// become floats.
#pragma once

#include <lua.hpp>
#include <string>
#include <string_view>

namespace jobq::lua {

/// Leaves a table with encode, decode, array and null on the stack. Called once per state, before any other function of
/// this file.
void openJson(lua_State* lua);

/// Pushes the value of `text`, which must be valid JSON. Raises a Lua error if the memory is used up or the script has
/// to end.
void pushJson(lua_State* lua, std::string_view text);

/// Returns the type name like luaL_typename, but "json.null" for json.null, which script authors do not know as
/// userdata.
const char* typeName(lua_State* lua, int index);

/// Marks the table at `index` as an array, so that an empty table is written as [].
void markArray(lua_State* lua, int index);

/// Returns the value at `index` as JSON text, keys in byte order. Throws ScriptError that names the place if the value
/// has no JSON form: a function, a string that is not UTF-8, an array with holes, a table with number and string keys,
/// nan, or more than 20 MB of text. Raises a Lua error if the script has to end.
std::string toJson(lua_State* lua, int index);

}  // namespace jobq::lua

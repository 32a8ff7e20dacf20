// JSON texts as Lua values and back. Objects are plain tables; arrays are tables that know it (json.array), so that an
// empty one stays one; null is json.null; integers that fit 64 bits stay exact, other numbers are floats.
#pragma once

#include <lua.hpp>
#include <string>
#include <string_view>

namespace jobq::lua {

/// Once per state, before anything else here: leaves a table with encode, decode, array and null on the stack.
void openJson(lua_State* lua);

/// Pushes the value of a text that is known to be JSON. Raises when the memory is used up.
void pushJson(lua_State* lua, std::string_view text);

/// As luaL_typename; json.null is no userdata to those who write scripts.
const char* typeName(lua_State* lua, int index);

/// The table at `index` is an array, an empty one too.
void markArray(lua_State* lua, int index);

/// The value at `index` as JSON text, keys in byte order. Raises, naming the place, when it is none: a function, a
/// string that is not UTF-8, an array with holes, a table with keys of both kinds, nan, more than 20 MB.
std::string toJson(lua_State* lua, int index);

}  // namespace jobq::lua

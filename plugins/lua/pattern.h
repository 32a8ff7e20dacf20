// The pattern functions of the sandbox: string.find, match, gmatch and gsub as in Lua 5.4.4, results, limits and
// messages alike, but with their steps counted. Lua's hook never fires inside a C function, so the stock ones outrun
// any deadline. Three differences: characters are classed as in the C locale; an iterator of gmatch that has failed
// keeps its limit of depth; and what is counted may end the script (execution_limiter.h).
#pragma once

#include <lua.hpp>

namespace jobq::lua {

/// Sets find, match, gmatch and gsub in the string table, which is on top of the stack and stays there. The state needs
/// its Watch before one of them is called. Their memory is Lua's own: the state's limit covers it.
void addPatterns(lua_State* lua);

}  // namespace jobq::lua

// The pattern functions of the sandbox: string.find, match, gmatch and gsub with the results, limits and messages of
// Lua 5.4.4, but with their steps counted. Lua's hook never fires inside a C function, so the stock functions outrun
// any deadline. Three differences exist: characters are classified as in the C locale; an iterator of gmatch that has
// failed keeps its limit of depth; and the counted steps may end the script (execution_limiter.h).
#pragma once

#include <lua.hpp>

namespace jobq::lua {

/// Sets find, match, gmatch and gsub in the string table, which is on top of the stack and stays there. The state needs
/// its ExecutionLimiter before the first call of the functions. All memory is Lua's own and counts against the
/// limit of the state.
void addPatterns(lua_State* lua);

}  // namespace jobq::lua

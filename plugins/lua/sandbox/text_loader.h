// Compiles texts under the limits of the running script.
#pragma once

#include <lua.hpp>
#include <string_view>

namespace jobq::lua {

/// Compiles `text` like lua_load, interruptible by the ExecutionLimiter. `name`: name of the text in messages. Returns
/// the status of lua_load. Runs on the thread of the state.
int loadText(lua_State* lua, std::string_view text, const char* name);

}  // namespace jobq::lua

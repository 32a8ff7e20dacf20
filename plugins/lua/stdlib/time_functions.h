// The library `os` of scripts: the time, and no other function of the stock library.
#pragma once

#include <lua.hpp>

#include "jobq/time.h"

namespace jobq::lua {

/// Adds `os` with `time`, `date` and `clock` to the libraries of the state. Times are UTC. `clock` outlives the state.
void openTime(lua_State* lua, const Clock& clock);

}  // namespace jobq::lua

// Text that goes from C++ to Lua.
#pragma once

#include <lua.hpp>
#include <string_view>

namespace jobq::lua {

/// Pushes a copy of `text` onto the stack. The bytes may hold NUL. Raises a Lua error if the memory is used up.
inline void pushText(lua_State* lua, std::string_view text) { lua_pushlstring(lua, text.data(), text.size()); }

}  // namespace jobq::lua

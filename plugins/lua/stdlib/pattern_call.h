// Arguments and results shared by the pattern functions. All functions run on the thread of the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <lua.hpp>
#include <string_view>

#include "sandbox/step_meter.h"
#include "stdlib/pattern_match.h"

namespace jobq::lua {

/// The state for which a matcher works. Both functions raise Lua errors.
class LuaHost final : public MatchHost {
 public:
  explicit LuaHost(lua_State* lua) : lua_(lua) {}
  void spend(std::uint64_t steps) override;
  [[noreturn]] void refuse(const char* message) override;

 private:
  lua_State* const lua_;
};

/// Returns an argument that has to be a string or a number. The view lives as long as the argument's place on the
/// stack. Raises a Lua error for other types.
std::string_view checkText(lua_State* lua, int index);

/// Returns the optional argument `init`, counted from 0. The result may lie beyond the text's end. `size`: bytes of the
/// text.
std::size_t checkStart(lua_State* lua, int index, std::size_t size);

/// Returns capture `index` of the last match. Without captures in the pattern, index 0 is the match (`begin` to `end`).
/// Charges the size of the capture. Raises a Lua error if the capture does not exist or was never closed.
Capture readCapture(lua_State* lua, Matcher& matcher, int index, const char* begin, const char* end);

/// Pushes the capture as a string, or as the integer of a position. Parameters and errors as in readCapture().
void pushCapture(lua_State* lua, Matcher& matcher, int index, const char* begin, const char* end);

/// Pushes all captures, or the match itself if the pattern has none, and returns their number.
int pushCaptures(lua_State* lua, Matcher& matcher, const char* begin, const char* end);

/// string.gsub.
int substitute(lua_State* lua);

}  // namespace jobq::lua

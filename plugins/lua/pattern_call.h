// What the pattern functions share: their arguments, and what they give back to Lua.
#pragma once

#include <cstddef>
#include <cstdint>
#include <lua.hpp>
#include <string_view>

#include "pattern_match.h"
#include "step_meter.h"

namespace jobq::lua {

/// The state that a matcher works for. Both verbs raise Lua errors.
class LuaHost final : public MatchHost {
 public:
  explicit LuaHost(lua_State* lua) : lua_(lua) {}
  void spend(std::uint64_t steps) override;
  [[noreturn]] void refuse(const char* message) override;

 private:
  lua_State* const lua_;
};

/// An argument that has to be a string or a number. Lives as long as its place on the stack.
std::string_view checkText(lua_State* lua, int index);

/// The optional argument `init`, counted from 0. It may lie beyond the text's end.
std::size_t checkStart(lua_State* lua, int index, std::size_t size);

/// A capture of the last match; the match itself (`begin` to `end`) as capture 0 of a pattern without any. Charged for
/// its size. Raises an error for one that there is not, or that was never closed.
Capture takeCapture(lua_State* lua, Matcher& matcher, int index, const char* begin, const char* end);

/// Pushes it: a string, or the integer of a position.
void pushCapture(lua_State* lua, Matcher& matcher, int index, const char* begin, const char* end);

/// Pushes all of them, and says how many; the match itself if the pattern has none.
int pushCaptures(lua_State* lua, Matcher& matcher, const char* begin, const char* end);

/// string.gsub.
int substitute(lua_State* lua);

}  // namespace jobq::lua

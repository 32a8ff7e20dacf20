#include "stdlib/pattern_call.h"

#include <algorithm>
#include <cstdlib>

#include "sandbox/execution_limiter.h"

namespace jobq::lua {

void LuaHost::spend(std::uint64_t steps) { ExecutionLimiter::of(lua_).spend(lua_, steps); }

void LuaHost::refuse(const char* message) {
  luaL_error(lua_, "%s", message);
  std::abort();  // unreachable: luaL_error does not return, but is not declared so
}

std::string_view checkText(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* text = luaL_checklstring(lua, index, &size);
  return {text, size};
}

std::size_t checkStart(lua_State* lua, int index, std::size_t size) {
  const lua_Integer start = luaL_optinteger(lua, index, 1);
  if (start > 0) return static_cast<std::size_t>(start) - 1;
  const auto length = static_cast<lua_Integer>(size);
  return start == 0 || start < -length ? 0 : static_cast<std::size_t>(length + start);
}

Capture readCapture(lua_State* lua, Matcher& matcher, int index, const char* begin, const char* end) {
  Capture capture{begin, end - begin};
  if (index < matcher.captures()) {
    capture = matcher.capture(index);
  } else if (index != 0) {
    luaL_error(lua, "invalid capture index %%%d", index + 1);
  }
  if (capture.size == Capture::kOpen) luaL_error(lua, "unfinished capture");
  if (capture.size > 0) matcher.meter().charge(static_cast<std::uint64_t>(capture.size));
  return capture;
}

void pushCapture(lua_State* lua, Matcher& matcher, int index, const char* begin, const char* end) {
  const Capture capture = readCapture(lua, matcher, index, begin, end);
  if (capture.size == Capture::kPosition) {
    lua_pushinteger(lua, capture.begin - matcher.subject().data() + 1);
  } else {
    lua_pushlstring(lua, capture.begin, static_cast<std::size_t>(capture.size));
  }
}

int pushCaptures(lua_State* lua, Matcher& matcher, const char* begin, const char* end) {
  const int count = std::max(matcher.captures(), 1);
  luaL_checkstack(lua, count, "too many captures");
  for (int index = 0; index < count; ++index) pushCapture(lua, matcher, index, begin, end);
  return count;
}

}  // namespace jobq::lua

// string.find, string.match and string.gmatch.
#include <algorithm>

#include "stdlib/character_class.h"
#include "stdlib/pattern.h"
#include "stdlib/pattern_call.h"

namespace jobq::lua {

namespace {

// Reads the pattern only up to its first magic character, because a pattern may have many megabytes.
bool isPlain(StepMeter& meter, std::string_view pattern) {
  while (!pattern.empty()) {
    const std::string_view piece = pattern.substr(0, StepMeter::kBatch);
    if (std::any_of(piece.begin(), piece.end(), isMagic)) return false;
    meter.charge(piece.size());
    pattern.remove_prefix(piece.size());
  }
  return true;
}

int pushPlace(lua_State* lua, std::string_view subject, const char* begin, const char* end) {
  lua_pushinteger(lua, begin - subject.data() + 1);
  lua_pushinteger(lua, end - subject.data());
  return 2;
}

int pushNothing(lua_State* lua) {
  luaL_pushfail(lua);
  return 1;
}

int findPlain(lua_State* lua, StepMeter& meter, std::string_view subject, std::string_view needle, std::size_t start) {
  const char* found = findText(meter, subject.substr(start), needle);
  meter.flush();
  return found == nullptr ? pushNothing(lua) : pushPlace(lua, subject, found, found + needle.size());
}

// Pushes the first match from `start` on, and returns the number of results. With `places` the place of the match comes
// first, and only captures follow.
int findPattern(lua_State* lua, std::string_view subject, std::string_view pattern, std::size_t start, bool places) {
  const bool anchored = !pattern.empty() && pattern.front() == '^';
  LuaHost host(lua);
  Matcher matcher(host, subject, pattern.substr(anchored ? 1 : 0));
  const char* at = subject.data() + start;
  const char* const last = anchored ? at : subject.data() + subject.size();
  const char* end = matcher.matchAt(at);
  while (end == nullptr && at != last) end = matcher.matchAt(++at);
  int count = 0;
  if (end == nullptr) {
    count = pushNothing(lua);
  } else {
    if (places) count = pushPlace(lua, subject, at, end);
    if (!places || matcher.captures() > 0) count += pushCaptures(lua, matcher, at, end);
  }
  matcher.meter().flush();
  return count;
}

int find(lua_State* lua) {
  const std::string_view subject = checkText(lua, 1);
  const std::string_view pattern = checkText(lua, 2);
  const std::size_t start = checkStart(lua, 3, subject.size());
  if (start > subject.size()) return pushNothing(lua);
  LuaHost host(lua);
  StepMeter meter(host);
  if (lua_toboolean(lua, 4) != 0 || isPlain(meter, pattern)) return findPlain(lua, meter, subject, pattern, start);
  return findPattern(lua, subject, pattern, start, true);
}

int match(lua_State* lua) {
  const std::string_view subject = checkText(lua, 1);
  const std::string_view pattern = checkText(lua, 2);
  const std::size_t start = checkStart(lua, 3, subject.size());
  return start > subject.size() ? pushNothing(lua) : findPattern(lua, subject, pattern, start, false);
}

// The upvalues of an iterator: both texts, where to continue, and where the last match ended (-1: no match yet).
enum Upvalue { kSubject = 1, kPattern, kNext, kLastEnd };

void remember(lua_State* lua, Upvalue place, lua_Integer value) {
  lua_pushinteger(lua, value);
  lua_replace(lua, lua_upvalueindex(place));
}

int nextMatch(lua_State* lua) {
  const std::string_view subject = checkText(lua, lua_upvalueindex(kSubject));
  const std::string_view pattern = checkText(lua, lua_upvalueindex(kPattern));
  const auto next = static_cast<std::size_t>(lua_tointeger(lua, lua_upvalueindex(kNext)));
  const lua_Integer lastEnd = lua_tointeger(lua, lua_upvalueindex(kLastEnd));
  if (next > subject.size()) return 0;
  LuaHost host(lua);
  Matcher matcher(host, subject, pattern);
  const char* const base = subject.data();
  for (const char* at = base + next; at <= base + subject.size(); ++at) {
    const char* end = matcher.matchAt(at);
    // An empty match directly behind the last match is no match.
    if (end == nullptr || end - base == lastEnd) continue;
    remember(lua, kNext, end - base);
    remember(lua, kLastEnd, end - base);
    const int count = pushCaptures(lua, matcher, at, end);
    matcher.meter().flush();
    return count;
  }
  matcher.meter().flush();
  return 0;
}

int gmatch(lua_State* lua) {
  const std::string_view subject = checkText(lua, 1);
  checkText(lua, 2);
  const std::size_t start = checkStart(lua, 3, subject.size());
  lua_settop(lua, 2);
  lua_pushinteger(lua, static_cast<lua_Integer>(std::min(start, subject.size() + 1)));
  lua_pushinteger(lua, -1);
  lua_pushcclosure(lua, nextMatch, kLastEnd);
  return 1;
}

}  // namespace

void addPatterns(lua_State* lua) {
  const luaL_Reg functions[] = {
      {"find", find}, {"match", match}, {"gmatch", gmatch}, {"gsub", substitute}, {nullptr, nullptr}};
  luaL_setfuncs(lua, functions, 0);
}

}  // namespace jobq::lua

#include "stdlib/time_functions.h"

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "sandbox/environment.h"
#include "sandbox/execution_limiter.h"

namespace jobq::lua {
namespace {

constexpr std::size_t kLongestFormat = 1'000;
constexpr std::string_view kConversions = "aAbBcCdDeFgGhHIjmMnprRStTuUVwWxXyYzZ%";

std::int64_t secondsNow(lua_State* lua) {
  const auto* clock = static_cast<const Clock*>(lua_touserdata(lua, lua_upvalueindex(1)));
  return std::chrono::floor<std::chrono::seconds>(clock->now()).time_since_epoch().count();
}

// Reads a field of a date table. A `fallback` below zero makes the field required.
int dateField(lua_State* lua, const char* name, int fallback, int offset) {
  const int type = lua_getfield(lua, 1, name);
  if (type == LUA_TSTRING)
    ExecutionLimiter::of(lua).spend(lua, 1 + lua_rawlen(lua, -1) / 4);  // tointegerx reads it digit by digit
  int isInteger = 0;
  lua_Integer value = lua_tointegerx(lua, -1, &isInteger);
  if (isInteger == 0) {
    if (type != LUA_TNIL) return luaL_error(lua, "field '%s' is not an integer", name);
    if (fallback < 0) return luaL_error(lua, "field '%s' missing in date table", name);
    value = fallback;
  }
  lua_pop(lua, 1);
  constexpr lua_Integer kMost = std::numeric_limits<int>::max() / 2;
  if (value < -kMost || value > kMost) return luaL_error(lua, "field '%s' is out-of-bound", name);
  return static_cast<int>(value) - offset;
}

// os.time([table])
int timeNow(lua_State* lua) {
  if (lua_isnoneornil(lua, 1)) {
    lua_pushinteger(lua, secondsNow(lua));
    return 1;
  }
  luaL_checktype(lua, 1, LUA_TTABLE);
  tm date{};
  date.tm_year = dateField(lua, "year", -1, 1900);
  date.tm_mon = dateField(lua, "month", -1, 1);
  date.tm_mday = dateField(lua, "day", -1, 0);
  date.tm_hour = dateField(lua, "hour", 12, 0);
  date.tm_min = dateField(lua, "min", 0, 0);
  date.tm_sec = dateField(lua, "sec", 0, 0);
  lua_pushinteger(lua, ::timegm(&date));
  return 1;
}

void setField(lua_State* lua, const char* name, lua_Integer value) {
  lua_pushinteger(lua, value);
  lua_setfield(lua, -2, name);
}

int pushDateTable(lua_State* lua, const tm& date) {
  lua_createtable(lua, 0, 9);
  setField(lua, "year", lua_Integer{date.tm_year} + 1900);
  setField(lua, "month", date.tm_mon + 1);
  setField(lua, "day", date.tm_mday);
  setField(lua, "hour", date.tm_hour);
  setField(lua, "min", date.tm_min);
  setField(lua, "sec", date.tm_sec);
  setField(lua, "yday", date.tm_yday + 1);
  setField(lua, "wday", date.tm_wday + 1);
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "isdst");
  return 1;
}

// os.date([format [, time]]). A format may begin with "!", as in the stock function; all times here are UTC.
int formatDate(lua_State* lua) {
  std::size_t size = 0;
  const char* text = luaL_optlstring(lua, 1, "%c", &size);
  std::string_view format(text, size);
  if (size > kLongestFormat)
    return luaL_error(lua, "the format has more than %d bytes", static_cast<int>(kLongestFormat));
  if (lua_type(lua, 2) == LUA_TSTRING) ExecutionLimiter::of(lua).spend(lua, 1 + lua_rawlen(lua, 2) / 4);
  const time_t time = lua_isnoneornil(lua, 2) ? secondsNow(lua) : luaL_checkinteger(lua, 2);
  tm date{};
  if (::gmtime_r(&time, &date) == nullptr) {
    return luaL_error(lua, "date result cannot be represented in this installation");
  }
  ExecutionLimiter::of(lua).spend(lua, 1 + size * 8);
  if (format.starts_with('!')) format.remove_prefix(1);
  if (format.starts_with("*t")) return pushDateTable(lua, date);
  luaL_Buffer buffer;
  luaL_buffinit(lua, &buffer);
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      luaL_addchar(&buffer, format[i]);
      continue;
    }
    const char conversion = i + 1 < format.size() ? format[++i] : '\0';
    if (kConversions.find(conversion) == std::string_view::npos) {
      return luaL_error(lua, "invalid conversion specifier in the format of os.date");
    }
    const char single[] = {'%', conversion, '\0'};
    char written[64];
    luaL_addlstring(&buffer, written, ::strftime(written, sizeof written, single, &date));
  }
  luaL_pushresult(&buffer);
  return 1;
}

// os.clock(). Returns seconds of processor time of the thread that runs the script.
int processorTime(lua_State* lua) {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  lua_pushnumber(lua, static_cast<lua_Number>(time.tv_sec) + static_cast<lua_Number>(time.tv_nsec) / 1e9);
  return 1;
}

}  // namespace

void openTime(lua_State* lua, const Clock& clock) {
  constexpr luaL_Reg kFunctions[] = {
      {"time", timeNow}, {"date", formatDate}, {"clock", processorTime}, {nullptr, nullptr}};
  luaL_newlibtable(lua, kFunctions);
  lua_pushlightuserdata(lua, const_cast<Clock*>(&clock));
  luaL_setfuncs(lua, kFunctions, 1);
  addLibrary(lua, LUA_OSLIBNAME);
}

}  // namespace jobq::lua

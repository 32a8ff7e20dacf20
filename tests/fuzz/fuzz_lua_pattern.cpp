// The pattern functions of the Lua sandbox against the stock functions: the same values, the same errors. Stock
// functions cannot be stopped, so they run only on inputs that the sandbox answered within a limited number of steps.
#include <algorithm>
#include <cstdint>
#include <lua.hpp>
#include <string>
#include <string_view>

#include "check.h"
#include "plugins/lua/sandbox/execution_limiter.h"
#include "plugins/lua/stdlib/pattern.h"
#include "tests/lua/end_at_check.h"

namespace {

// All results of a call as a text, including the values of an iterator.
constexpr const char* kWords = R"(
local own, stock, format, type, tostring, mathtype = ...
local function say(...)
  local out = {}
  for i = 1, select('#', ...) do
    local v = select(i, ...)
    out[i] = type(v) == 'string' and format('%q', v) or (mathtype(v) or '') .. tostring(v)
  end
  return table.concat(out, ' ')
end
local values = {function(...) return say(...) end, function() end, {a = 'X', b = false, [1] = 'one'}, 7}
function judge(isOwn, choice, subject, pattern, extra, number)
  local functions = isOwn and own or stock
  if choice == 0 then return say(pcall(functions.find, subject, pattern, number)) end
  if choice == 1 then return say(pcall(functions.find, subject, pattern, number, true)) end
  if choice == 2 then return say(pcall(functions.match, subject, pattern, number)) end
  if choice > 3 then
    return say(pcall(functions.gsub, subject, pattern, values[choice - 3] or extra, number ~= 0 and number or nil))
  end
  local out = {}
  local iterator = functions.gmatch(subject, pattern, number)
  for i = 1, 80 do
    local line = table.pack(pcall(iterator))
    out[i] = say(table.unpack(line, 1, line.n))
    if line.n == 1 or not line[1] then break end
  end
  return table.concat(out, ';')
end
)";

lua_State* makeState() {
  lua_State* lua = luaL_newstate();
  new jobq::lua::ExecutionLimiter(lua, std::size_t{1} << 20);
  luaL_openlibs(lua);
  BELIEVE(luaL_loadstring(lua, kWords) == LUA_OK);
  lua_newtable(lua);
  jobq::lua::addPatterns(lua);
  lua_getglobal(lua, "string");
  lua_getfield(lua, -1, "format");
  lua_getglobal(lua, "type");
  lua_getglobal(lua, "tostring");
  lua_getglobal(lua, "math");
  lua_getfield(lua, -1, "type");
  lua_remove(lua, -2);
  BELIEVE(lua_pcall(lua, 6, 0, 0) == LUA_OK);
  return lua;
}

struct Question {
  int choice;
  lua_Integer number;
  std::string_view subject;
  std::string_view pattern;
  std::string_view extra;
};

std::string ask(lua_State* lua, bool own, const Question& question) {
  lua_getglobal(lua, "judge");
  lua_pushboolean(lua, own ? 1 : 0);
  lua_pushinteger(lua, question.choice);
  for (const std::string_view text : {question.subject, question.pattern, question.extra}) {
    lua_pushlstring(lua, text.data(), text.size());
  }
  lua_pushinteger(lua, question.number);
  lua_pcall(lua, 6, 1, 0);
  std::size_t size = 0;
  const char* text = lua_tolstring(lua, -1, &size);
  const std::string answer(text == nullptr ? "" : text, size);
  lua_pop(lua, 1);
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static lua_State* const lua = makeState();
  static jobq::lua::ExecutionLimiter& watch = jobq::lua::ExecutionLimiter::of(lua);
  if (size < 4) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 4, size - 4);
  Question question{data[0] % 9, static_cast<signed char>(data[1]) % 16, {}, {}, {}};
  question.pattern = text.substr(0, data[2] % 64);
  const std::string_view rest = text.substr(question.pattern.size());
  question.extra = rest.substr(0, data[3] % 16);
  question.subject = rest.substr(question.extra.size()).substr(0, 64);
  jobq::lua::test::EndAtCheck end(100);
  watch.arm(end);
  const std::string own = ask(lua, true, question);
  watch.disarm();
  if (watch.reason()) return 0;
  BELIEVE(own == ask(lua, false, question));
  return 0;
}

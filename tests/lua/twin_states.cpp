#include "twin_states.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <stdexcept>

#include "plugins/lua/stdlib/pattern.h"

namespace jobq::lua {

namespace {

// The Lua functions of the tests. `all` collects the values of an iterator, continues after the first error, and ends
// by itself.
constexpr const char* kWords = R"(
local function text(v)
  local kind = type(v)
  if kind == 'string' then return string.format('%q', v) end
  if kind == 'number' then return math.type(v) .. ' ' .. v end
  return kind == 'table' and v.said or kind == 'boolean' and tostring(v) or kind
end
function say(...)
  local out = {}
  for i = 1, select('#', ...) do out[i] = text((select(i, ...))) end
  return table.concat(out, ' ')
end
function all(iterator)
  local out, failed = {}, false
  for i = 1, 60 do
    local line = table.pack(pcall(iterator))
    out[i] = say(table.unpack(line, 1, line.n))
    if line.n == 1 or not line[1] and failed then break end
    failed = failed or not line[1]
  end
  return {said = table.concat(out, '; ')}
end
function saying(...) return '<' .. say(...) .. '>' end
function some(first) return #tostring(first) % 2 == 1 and first end
function nothing() end
function answer(source)
  local chunk, fault = load('return ' .. source, '=test')
  return chunk and say(pcall(chunk)) or fault
end
)";

}  // namespace

TestState::TestState(Patterns patterns) : lua_(luaL_newstate()), limiter_(lua_.get(), std::size_t{1} << 20) {
  luaL_openlibs(lua());
  if (patterns == Patterns::kOwn) {
    lua_getglobal(lua(), "string");
    addPatterns(lua());
    lua_pop(lua(), 1);
  }
  if (luaL_dostring(lua(), kWords) != LUA_OK) throw std::runtime_error(lua_tostring(lua(), -1));
}

std::string TestState::answer(const std::string& expression) {
  lua_getglobal(lua(), "answer");
  lua_pushlstring(lua(), expression.data(), expression.size());
  lua_pcall(lua(), 1, 1, 0);
  std::size_t size = 0;
  const char* text = lua_tolstring(lua(), -1, &size);
  std::string answer(text == nullptr ? "no text" : text, text == nullptr ? 7 : size);
  lua_pop(lua(), 1);
  return answer;
}

std::string TwinStates::answer(const std::string& expression) {
  const std::string judged = stock_.answer(expression);
  EXPECT_EQ(own_.answer(expression), judged) << expression;
  return judged;
}

std::string literal(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    char code[8];
    std::snprintf(code, sizeof code, std::isalnum(static_cast<unsigned char>(c)) != 0 ? "%c" : "\\%03d",
                  static_cast<unsigned char>(c));
    out += code;
  }
  return out + "'";
}

}  // namespace jobq::lua

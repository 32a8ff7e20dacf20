// Compares the sandbox with stock Lua: the same calls in both, results and messages.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <lua.hpp>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "sandbox/sandbox.h"
#include "script_folder.h"
#include "standard_libraries.h"
#include "testkit/wait_for.h"

namespace jobq::lua::test {
namespace {

// Corrects the wrong argument number in stock Lua's message of table.remove.
std::string corrected(std::string text) {
  const std::string wrong = "#1 to 'remove' (position";
  for (std::size_t at = text.find(wrong); at != std::string::npos; at = text.find(wrong, at)) text[at + 1] = '2';
  return text;
}

std::string ofStock(const std::string& text) {
  const std::unique_ptr<lua_State, decltype(&lua_close)> lua(luaL_newstate(), lua_close);
  luaL_openlibs(lua.get());
  if (luaL_loadbuffer(lua.get(), text.data(), text.size(), "@case.lua") != LUA_OK ||
      lua_pcall(lua.get(), 0, 1, 0) != LUA_OK || lua_pcall(lua.get(), 0, 1, 0) != LUA_OK) {
    return std::string("error: ") + lua_tostring(lua.get(), -1);
  }
  return corrected(lua_tostring(lua.get(), -1));
}

// Ends a script that hangs.
class HangLimit final : public EndCondition {
 public:
  std::optional<std::string> reasonToEnd() override {
    if (std::chrono::steady_clock::now() - begun_ < testkit::kHangDeadline) return std::nullopt;
    return "it takes too long";
  }

 private:
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

std::string ofSandbox(const std::string& text) {
  std::string result;
  const StandardLibraries libraries;
  HangLimit end;
  try {
    Sandbox(std::size_t{64} << 20, Sandbox::kPlainOfHandlers, libraries)
        .run(compile("case", text, std::size_t{64} << 20, libraries), end, nullptr, [&result](lua_State* lua) {
          lua_call(lua, 0, 1);
          result = lua_tostring(lua, -1);
        });
  } catch (const ScriptError& error) {
    return std::string("error: ") + error.what();
  }
  return result;
}

// Returns a script that spells the results of each function. `cases`: the inside of a list of functions.
std::string spelling(const std::string& cases) {
  return R"(
local function spell(v)
  if type(v) == 'table' then
    local parts = {}
    for i = 1, 12 do parts[i] = tostring(rawget(v, i)) end
    return '{' .. table.concat(parts, ' ') .. ' n=' .. tostring(rawget(v, 'n')) .. '}'
  end
  if type(v) == 'function' or type(v) == 'thread' then return type(v) end
  return math.type(v) and math.type(v) .. ' ' .. tostring(v) or tostring(v)
end
local function all(...)
  local parts = {}
  for i = 1, select('#', ...) do parts[i] = spell((select(i, ...))) end
  return table.concat(parts, ', ')
end
return function()
  local lines = {}
  for i, f in ipairs{)" +
         cases + R"(} do lines[i] = i .. ': ' .. all(pcall(f)) end
  return table.concat(lines, '\n')
end)";
}

void expectAsStock(const std::string& cases) {
  const std::string text = spelling(cases);
  EXPECT_EQ(ofSandbox(text), ofStock(text));
}

// The sandbox relies on the inside of one release (core/README.md). The shared library has one name for all of 5.4.
TEST(LoadedLua, IsTheReleaseOfTheHeaders) {
  EXPECT_NE(std::string(lua_ident).find(LUA_RELEASE " "), std::string::npos) << lua_ident;
}

TEST(SandboxAsStockLua, Tables) {
  expectAsStock(R"(
    function() local t = {1, 2} table.insert(t, 3) table.insert(t, 1, 0) return t, #t end,
    function() table.insert({}, 5, 1) end,
    function() table.insert({}, 1, 1, 1) end,
    function() table.insert({}) end,
    function() table.insert(1, 1) end,
    function() table.insert({1, 2}, 'x', 1) end,
    function() local t = {1, 2, 3} return table.remove(t), table.remove(t, 1), t end,
    function() return table.remove({}), table.remove({}, 0), table.remove({1}, 2) end,
    function() return table.remove({1, 2, 3}, 7) end,
    function() local t = {[0] = 'zero'} return table.remove(t, 0), t[0] end,
    function() return table.concat({1, 2.5, 'x'}, ', ') end,
    function() return table.concat({1, 2, 3}, '-', 2), table.concat({1, 2, 3}, '-', 2, 3), table.concat({}, 'x', 1, 0) end,
    function() return table.concat({1, {}, 3}) end,
    function() return table.concat({1, nil, 3}, '', 1, 3) end,
    function() return table.concat({}, {}) end,
    function() return table.pack(), table.pack(1, nil, 3, nil) end,
    function() return table.unpack({1, 2, 3}) end,
    function() return table.unpack({1, 2, 3}, 2), table.unpack({1, 2}, 1, 4) end,
    function() return table.unpack({}, 1, 1e7) end,
    function() return table.unpack({}, math.mininteger, math.maxinteger) end,
    function() return table.unpack({}, 5, 1) end,
    function() return table.move({1, 2, 3}, 1, 3, 2) end,
    function() return table.move({1, 2, 3}, 2, 3, 1), table.move({1, 2, 3}, 1, 3, 1, {}), table.move({1}, 1, 0, 5) end,
    function() return table.move({}, math.mininteger, math.maxinteger, 1) end,
    function() return table.move({}, 1, 2, math.maxinteger) end,
    function() return table.move({}, 1, 2) end,
    function() local t = {3, 1, 2} table.sort(t) return t end,
    function() local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return t end,
    function() table.sort({1, 'x', 3}) end,
    function() table.sort({1, 2, 3}, 5) end,
    function() table.sort({3, 1, 2}, function() error('in order') end) end,
    function() local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() return true end) end,
    function() return #setmetatable({}, {__len = function() return 5 end}), rawlen({1}), rawequal(1, 1.0) end,
    function() return table.concat(setmetatable({}, {__index = function(_, i) return i end}), ',', 1, 5) end,
    function() return table.unpack(setmetatable({}, {__len = function() return 2 end, __index = function(_, i) return -i end})) end,
    function() table.insert(setmetatable({}, {__len = function() return 'x' end}), 1) end
  )");
}

TEST(SandboxAsStockLua, ProtectedCallsAndCoroutines) {
  expectAsStock(R"(
    function() return xpcall(function(...) return ... end, print, 1, nil, 3) end,
    function() return xpcall(error, function(m) return m .. '!' end, 'x') end,
    function() return xpcall(error, function(m) return m, 'second' end, {1}) end,
    function() return xpcall() end,
    function() return xpcall(print, 1) end,
    function() return xpcall(nil, function(m) return m end) end,
    function() return (xpcall(error, function() error('again') end)) end,
    function() return pcall(error), pcall(error, nil), select('#', pcall(error)) end,
    function() return coroutine.wrap(function(...) return select('#', ...), ... end)(1, nil) end,
    function() local w = coroutine.wrap(function() return 1 end) w() w() end,
    function() local w = coroutine.wrap(function() error('inside') end) w() end,
    function() local w = coroutine.wrap(function() error({1}) end) w() end,
    function() local w = coroutine.wrap(function() error('inside', 0) end) w() end,
    function() local w w = coroutine.wrap(function() w() end) w() end,
    function() coroutine.wrap(1) end,
    function() coroutine.create() end,
    function() return coroutine.resume(1) end,
    function() return coroutine.close({}) end,
    function()
      local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) return a + b end)
      return coroutine.status(co), table.pack(coroutine.resume(co, 1)), coroutine.status(co),
             table.pack(coroutine.resume(co, 10)), coroutine.status(co), coroutine.resume(co)
    end,
    function() return coroutine.resume(coroutine.create(error), 'x') end,
    function() return coroutine.resume(coroutine.create(function() local x = nil + 1 end)) end,
    function() return coroutine.isyieldable(), coroutine.wrap(coroutine.isyieldable)() end,
    function() return select(2, coroutine.running()), coroutine.wrap(function() return select(2, coroutine.running()) end)() end,
    function() return coroutine.resume(coroutine.running()) end,
    function() return coroutine.close(coroutine.running()) end,
    function() return coroutine.yield(1) end,
    function() return coroutine.wrap(function() return pcall(function() return coroutine.yield(1) end) end)() end,
    function()
      local w = coroutine.wrap(function() return pcall(function() return coroutine.yield(1), 'back' end) end)
      return w(), w('given')
    end,
    function()
      local w = coroutine.wrap(function() return xpcall(function() coroutine.yield(1) error('x', 0) end, function(m) return m .. 'h' end) end)
      return w(), w()
    end,
    function() return coroutine.wrap(function() table.sort({2, 1}, coroutine.yield) end)() end,
    function() return coroutine.wrap(function() return ('x'):gsub('x', coroutine.yield) end)() end,
    function()
      local log = {}
      local co = coroutine.create(function()
        local a <close> = setmetatable({}, {__close = function(_, e) log[#log + 1] = 'a ' .. tostring(e) end})
        local b <close> = setmetatable({}, {__close = function(_, e) log[#log + 1] = 'b ' .. tostring(e) end})
        coroutine.yield()
      end)
      coroutine.resume(co)
      return coroutine.close(co), log, coroutine.status(co), coroutine.close(co)
    end,
    function()
      local co = coroutine.create(function()
        local a <close> = setmetatable({}, {__close = function(_, e) error('closing ' .. tostring(e), 0) end})
        coroutine.yield()
      end)
      coroutine.resume(co)
      return coroutine.close(co)
    end,
    function()
      for v in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do if v == 3 then return v end end
    end,
    function() return coroutine.wrap(function() return coroutine.wrap(function() return coroutine.yield(1) end)() end)() end
  )");
}

TEST(SandboxAsStockLua, StringsAndText) {
  expectAsStock(R"(
    function() return ('ab'):rep(3), ('ab'):rep(3, ','), ('ab'):rep(0), ('ab'):rep(-1), (''):rep(5, 'x'), ('x'):rep(1, ',') end,
    function() return ('x'):rep() end,
    function() return ('x'):rep(1 << 62) end,
    function() return ('x'):rep('3'), ('x'):rep(2.0) end,
    function() return ('x'):rep(2.5) end,
    function() return ('x'):byte(1, -1), ('xyz'):sub(-2), ('xyz'):upper(), ('XYZ'):lower(), ('xyz'):reverse(), #'xyz' end,
    function() return string.format('%5d|%-5s|%q|%g|%x|%c|%%|%i|%5.2f|%a', 42, 'x', 'a\nb', 0.1, 255, 65, 3, 1.005, 1) end,
    function() return string.format('%d', 1.5) end,
    function() return string.format('%y', 1) end,
    function() return string.format('%s %s', 1) end,
    function() return string.format('%s', setmetatable({}, {__tostring = function() return 'mine' end})) end,
    function() return string.format('%s', setmetatable({}, {__tostring = function() return 1 end})) end,
    function() return string.unpack('i4 s1 z', string.pack('i4 s1 z', 7, 'ab', 'cd')) end,
    function() return string.pack('c5', 'x'), string.packsize('i4 i8'), string.pack('>I2', 258) end,
    function() return string.pack('c1', 'xyz') end,
    function() return string.pack('i17', 1) end,
    function() return string.pack() end,
    function() return string.char(72, 105), string.char() end,
    function() return string.char(256) end,
    function() return utf8.char(228, 8364), utf8.len('\xc3\xa4b'), utf8.codepoint('\xc3\xa4', 1), utf8.offset('a\xc3\xa4b', 3) end,
    function() return utf8.len('\xff'), utf8.codepoint('\xff') end,
    function() local t = {} for p, c in utf8.codes('a\xc3\xa4') do t[#t + 1] = p t[#t + 1] = c end return t end,
    function() return tonumber('0x10'), tonumber('10', 2), tonumber('z', 36), tonumber(' 1e2 '), tonumber('x'), tonumber('1', 99) end,
    function() return tonumber() end,
    function() return '10' + 5, '3' * '4', 10 .. 20, '0x10' + 0, -'2', '7' // 2, '1' < '2' end,
    function() return {} + 1 end,
    function() return 'x' + 1 end,
    function() return 1 < 'x' end,
    function() return tostring(1e15), tostring(-0.0), tostring(1/0), tostring(2^53), tostring(nil), math.maxinteger end,
    function() return ('x'):nofunction() end,
    function() return #_VERSION > 0, type(print), select('#'), select(-1, 1, 2), select(2, 'a', 'b') end,
    function() return select(0) end,
    function() return assert(false, 'why'), 1 end,
    function() return assert(nil) end,
    function() return assert(1, 2, 3) end,
    function() return ipairs({}) end,
    function() return next({}, 'x') end,
    function() return getmetatable(setmetatable({}, {__metatable = 'mine'})) end,
    function() return setmetatable(setmetatable({}, {__metatable = 1}), {}) end,
    function() return setmetatable({}) end,
    function() return setmetatable({}, 1) end,
    function() return setmetatable(1, {}) end,
    function() return rawset({}, 1) end,
    function() return rawset(1, 1, 1) end,
    function() return rawset({}, nil, 1) end,
    function() return rawset({}, 'x', 5).x end,
    function() return load('return 1 + 1')(), load('return ...', 'n', 't', {})(7) end,
    function() return load('return x', 'n', 't', {x = 9})(), load('x =', '=name') end,
    function() return load('syntax error here', '@file.lua') end,
    function() return load('return 1', 'n', 't')() end,
    function() return load('x = 1; return x', 'n', 't', nil)() end,
    function() return load('error("in chunk")', '=chunk')() end,
    function() return load(5) and load('return 5')() end,
    function() return math.floor(2.7), math.tointeger(3.0), math.ult(1, -1), math.fmod(-7, 3), math.max(1, 5), math.type(1) end,
    function() return math.tointeger('x'), math.floor('3.7'), math.abs(math.mininteger) end,
    function() return math.random(0) ~= nil, math.random(5, 5), pcall(math.random, 2, 1) end
  )");
}

// Stock Lua closes the variables of a failed coroutine when the coroutine is closed, or never.
TEST(SandboxUnlikeStockLua, AFailedCoroutineClosesTheVariables) {
  EXPECT_EQ(ofSandbox(R"(return function()
    local log = {}
    local co = coroutine.create(function()
      local a <close> = setmetatable({}, {__close = function(_, e) log[#log + 1] = 'closed by ' .. tostring(e) end})
      error('body', 0)
    end)
    return tostring(coroutine.resume(co)) .. ', ' .. table.concat(log) .. ', ' .. tostring(coroutine.close(co))
  end)"),
            "false, closed by body, false");
}

// Weak tables are strong tables (plugins/lua/sandbox/hidden_names.cpp, disableWeakTables).
TEST(SandboxUnlikeStockLua, NoTableIsWeak) {
  EXPECT_EQ(ofSandbox(R"(return function()
    local meta = {__mode = 'k'}
    local weak = setmetatable({}, meta)
    weak[{}] = 1
    for i = 1, 2000000 do local garbage = {} end
    return tostring(next(weak) ~= nil) .. meta.__mode
  end)"),
            "truek");
}

// Calls of tables go only to functions found by setmetatable (plugins/lua/sandbox/hidden_names.cpp,
// disableCallsOfTables).
TEST(SandboxUnlikeStockLua, OnlyFunctionsAnswerCalls) {
  EXPECT_EQ(ofSandbox(R"(return function()
    local meta = {__call = function(self, a, b) return self.name, a, b end}
    local t = setmetatable({name = 'me'}, meta)
    local said = {table.concat({t(1, 2)}, ' '), tostring(pcall(t, 3, 4))}
    local class = setmetatable({}, {__call = function(class, x) return setmetatable({x = x}, class) end})
    class.__index = class
    said[#said + 1] = class(7).x
    said[#said + 1] = ('abc'):gsub('b', setmetatable({}, {__index = function(_, k) return t(k) end}))
    local names = {}
    for name in pairs(meta) do names[#names + 1] = name end
    for name in next, meta do names[#names + 1] = name end
    said[#said + 1] = table.concat(names, ',')
    meta.__call = nil
    said[#said + 1] = tostring(t(5))
    setmetatable(t, meta)
    said[#said + 1] = select(2, pcall(t))
    meta.__call = t
    said[#said + 1] = select(2, pcall(setmetatable, t, meta))
    meta.__call = print
    said[#said + 1] = select(2, pcall(t))
    return table.concat(said, '; ')
  end)"),
            "me 1 2; true; 7; amec; __call,__call; me; attempt to call a table value; "
            "__call must be a function here; attempt to call a table value");
}

// Random calls of the reimplemented table functions.
TEST(SandboxAsStockLua, RandomTableCalls) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const auto any = [&random](int low, int high) {
      return std::to_string(low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)));
    };
    std::string cases;
    for (int i = 0; i < 40; ++i) {
      std::string list = "{";
      for (int n = static_cast<int>(random() % 8); n > 0; --n) list += (random() % 9 == 0 ? "nil" : any(-5, 20)) + ", ";
      list += "}";
      const std::string calls[] = {
          "table.insert(t, " + any(-1, 9) + ", 99)",
          "table.insert(t, 7)",
          "r = table.remove(t, " + any(-1, 9) + ")",
          "r = table.remove(t)",
          "r = table.concat(t, '" + any(0, 5) + "', " + any(-1, 5) + ", " + any(-1, 8) + ")",
          "table.move(t, " + any(-2, 8) + ", " + any(-2, 8) + ", " + any(-2, 8) + ")",
          "r = table.pack(table.unpack(t, " + any(-2, 4) + ", " + any(-2, 8) + "))",
          "table.sort(t)",
          "table.sort(t, function(a, b) return (a or 0) % 7 > (b or 0) % 7 end)",
      };
      cases +=
          "function() local r local t = " + list + " " + calls[random() % std::size(calls)] + " return t, r end,\n";
    }
    const std::string text = spelling(cases);
    ASSERT_EQ(ofSandbox(text), ofStock(text)) << "seed " << seed << "\n" << text;
  }
}

}  // namespace
}  // namespace jobq::lua::test

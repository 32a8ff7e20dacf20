// What scripts mean: the job's methods, errors, filters and quotas; what differs from stock Lua and what does not; and
// that nothing leads from one script to the next.
#include <chrono>
#include <random>
#include <thread>

#include "lua_fixture.h"
#include "quotas.h"
#include "sandbox.h"

namespace jobq::lua::test {
namespace {

using Strings = std::vector<std::string>;

// ---- the job

TEST_F(LuaTest, TheJobTellsAndReports) {
  scripts.write("tell", R"(return function(input, job)
    print('a', 1, nil, true)
    job:log('b', 2.5)
    job:emit({n = 1}, {tokens = 3})
    job:emit(json.null)
    job:progress('half')
    return {id = job.id, endpoint = job.endpoint, attempt = job.attempt, city = job.env.CITY, none = job.env.NONE,
            left = job:deadline(), stopped = job:stopped(), input = input}
  end)");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("tell"));
  ScriptContext context(clock.now() + Millis(1500), 7);
  EXPECT_EQ(handler->run(R"({"z":[],"a":{}})", context),
            R"({"attempt":7,"city":"Ulm","endpoint":"the-endpoint","id":"11111111-2222-3333-4444-555555555555-u1",)"
            R"("input":{"a":{},"z":[]},"left":1500,"stopped":false})");
  EXPECT_EQ(context.told(),
            (Strings{"log a\t1\tnil\ttrue", "log b\t2.5", "{\"n\":1} {\"tokens\":3}", "null", "progress \"half\""}));
}

TEST_F(LuaTest, MethodsAreCalledWithAColon) {
  EXPECT_EQ(once("return function(input, job)\n job.emit(1)\nend"),
            "FAILED: once.lua:2: bad argument #1 to 'emit' (say job:emit(...), with a colon)");
}

TEST_F(LuaTest, AScriptThatLooksEndsByItselfWhenStopped) {
  scripts.write("patient", R"(return function(input, job)
    print('begun') while not job:stopped() do end return 'ended'
  end)");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("patient"));
  ScriptContext context;
  context.onLine = [&context](std::string_view) { context.stop(); };
  EXPECT_EQ(outcome(*handler, "{}", context), "\"ended\"");
}

TEST_F(LuaTest, AScriptThatDoesNotLookIsStopped) {
  scripts.write("deaf",
                "return function(input) if input.go then print('begun') while true do end end return 'fine' end");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("deaf"));
  ScriptContext context;
  context.onLine = [&context](std::string_view) { context.stop(); };
  EXPECT_EQ(outcome(*handler, R"({"go":1})", context), "FAILED: the job was stopped");
  ScriptContext next;
  EXPECT_EQ(outcome(*handler, "{}", next), "\"fine\"");
}

// The server stops a job whose time is over; until then the handler keeps what came of it to itself.
TEST_F(LuaTest, ADeadlineThatPassesEndsTheScript) {
  scripts.write("late",
                "return function(input) if input.go then print('begun') while true do end end return 'fine' end");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("late"));
  ScriptContext context(clock.now() + Millis(60'000));
  std::atomic<bool> ended = false;
  context.onLine = [this](std::string_view) { clock.advance(Millis(60'000)); };
  std::jthread server([&] {
    // The job's time is over before it is stopped, as in the server: a second later.
    while (clock.now() < context.deadline()) std::this_thread::yield();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    while (!ended && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_FALSE(ended);
    context.stop();
  });
  EXPECT_EQ(outcome(*handler, R"({"go":1})", context), "FAILED: the job's execution timeout is over");
  ended = true;
  server.join();
  ScriptContext next;
  EXPECT_EQ(outcome(*handler, "{}", next), "\"fine\"");
}

TEST_F(LuaTest, ErrorsSayWhere) {
  EXPECT_EQ(once("return function()\n\n  error('no luck')\nend"), "FAILED: once.lua:3: no luck");
  EXPECT_EQ(once("return function(input)\n  return input.a.b\nend"),
            "FAILED: once.lua:2: attempt to index a nil value (field 'a')");
  EXPECT_EQ(once("return function() error('plain', 0) end"), "FAILED: plain");
  EXPECT_EQ(once("return function() error({code = 5}) end"), R"(FAILED: {"code":5})");
  EXPECT_EQ(once("return function() error() end"), "FAILED: the error is a nil");
  EXPECT_EQ(once("return function() error(42) end"), "FAILED: 42");
  EXPECT_EQ(once("return function() error(0.1) end"), "FAILED: 0.1");
  EXPECT_EQ(once("return function() return {a = {1, {b = print}}} end"), "FAILED: a function at .a[2].b is not JSON");
}

TEST_F(LuaTest, AScriptThatDoesNotRunMakesNoWorker) {
  const auto fails = [this](const std::string& text) {
    scripts.write("bad", text);
    const auto factory = handlers();
    try {
      (void)factory->make(envFor("bad"));
    } catch (const std::exception& error) {
      EXPECT_EQ(factory->fault("bad"), error.what());
      return std::string(error.what());
    }
    return std::string("it runs");
  };
  EXPECT_EQ(fails("return function( end"), "bad.lua:1: <name> or '...' expected near 'end'");
  EXPECT_EQ(fails("local x = nil + 1 return print"), "bad.lua:1: attempt to perform arithmetic on a nil value");
  EXPECT_EQ(fails("x = 1"), "bad.lua returns no function: let it end with `return function(...) ... end`");
  EXPECT_EQ(fails("while true do end"), "its first lines take longer than a second, before any job");
  EXPECT_EQ(fails("\x1bLua" + std::string(100, '\0')), "attempt to load a binary chunk (mode is 't')");
  EXPECT_EQ(fails("return function() end -- " + std::string(1U << 20, 'x')), "bad.lua is larger than 1 MB: split it");
}

// ---- one job and the next

TEST_F(LuaTest, NothingOfOneJobIsSeenByTheNext) {
  scripts.write("leave", R"(
    local secret
    return function(input)
      if input.look then
        return {tostring(secret), tostring(rawget(_G, 'leak')), tostring(_G.string.leak), tostring(('').leak),
                tostring(json.array({}).leak), tostring(_ENV.leak), tostring(math.leak), tostring(load('return leak')())}
      end
      secret, leak = 'mine', 'mine'
      _G.leak = 'mine'
      load("leak = 'mine'")()
      setmetatable(_ENV.string or {}, nil)
    end)");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("leave"));
  ScriptContext context;
  EXPECT_EQ(outcome(*handler, "{}", context), "FAILED: leave.lua:11: cannot change a protected metatable");
  EXPECT_EQ(outcome(*handler, R"({"look":1})", context), R"(["nil","nil","nil","nil","nil","nil","nil","nil"])");
}

TEST_F(LuaTest, LibrariesCannotBeChanged) {
  scripts.write("change", R"(return function(input, job)
    local failed = {}
    local function try(what, ...) if pcall(...) then failed[#failed + 1] = what end end
    for _, name in ipairs{'string', 'table', 'math', 'utf8', 'coroutine', 'json'} do
      local lib = _G[name]
      try(name .. ' set', function() lib.x = 1 end)
      try(name .. ' rawset', rawset, lib, 'x', 1)
      try(name .. ' rawset 1', rawset, lib, 1, 1)
      try(name .. ' insert', table.insert, lib, 1)
      try(name .. ' move', table.move, {1}, 1, 1, 1, lib)
      try(name .. ' setmetatable', setmetatable, lib, {})
      try(name .. ' array', json.array, lib)
      if getmetatable(lib) ~= false then failed[#failed + 1] = name end
      if next(lib) ~= nil then failed[#failed + 1] = name .. ' holds something' end
    end
    if getmetatable('') ~= false or getmetatable(_G) ~= false or getmetatable(job) ~= false then
      failed[#failed + 1] = 'metatables'
    end
    if type(getmetatable(json.null)) ~= 'string' or type(getmetatable(json.array())) ~= 'string' then
      failed[#failed + 1] = 'metatables of json'
    end
    try('job', setmetatable, job, {})
    try('_G', setmetatable, _G, {})
    try('array', setmetatable, json.array(), {})
    try('null', function() json.null.x = 1 end)
    for _, name in ipairs{'io', 'os', 'package', 'debug', 'require', 'dofile', 'loadfile', 'collectgarbage', 'quota'} do
      if _G[name] ~= nil then failed[#failed + 1] = name end
    end
    for _, f in ipairs{string.dump or 'none', math.randomseed or 'none', ('').dump or 'none'} do
      if f ~= 'none' then failed[#failed + 1] = 'a function that should not be' end
    end
    local ok, why = load('\27Lua' .. ('\0'):rep(100))
    if ok or not why:find('binary chunk') then failed[#failed + 1] = 'bytecode' end
    ok, why = load('\27Lua', 'x', 'b')
    if ok then failed[#failed + 1] = 'bytecode' end
    return json.array(failed)
  end)");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("change"));
  ScriptContext context;
  EXPECT_EQ(outcome(*handler, "{}", context), "[]");
}

// lua_load takes the globals from the registry's array without asking how long it is (library.cpp, dropEnvironment).
TEST_F(LuaTest, LoadSeesTheGlobalsInEveryJob) {
  scripts.write("load",
                "return function() x = 5 return load('return x')() + load('return load(\"return x\")()')() end");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("load"));
  for (int job = 0; job < 20; ++job) {
    ScriptContext context;
    ASSERT_EQ(outcome(*handler, "{}", context), "10") << "job " << job;
  }
}

TEST_F(LuaTest, RawsetOfOwnTablesIsStockRawset) {
  EXPECT_EQ(once(R"(return function()
    local t = setmetatable({}, {__newindex = error, __metatable = false})
    return rawset(t, 'x', 1).x
  end)"),
            "1");
}

// ---- stock Lua as the oracle

// Stock Lua blames the wrong argument of table.remove.
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

std::string ofSandbox(const std::string& text) {
  std::string result;
  const auto begun = std::chrono::steady_clock::now();
  const auto judge = [begun] {
    return std::chrono::steady_clock::now() - begun < std::chrono::seconds(20) ? "" : "it takes too long";
  };
  try {
    Sandbox(std::size_t{64} << 20).run(compile("case", text), judge, {}, [&result](lua_State* lua) {
      lua_call(lua, 0, 1);
      result = lua_tostring(lua, -1);
    });
  } catch (const ScriptError& error) {
    return std::string("error: ") + error.what();
  }
  return result;
}

// `cases` is the inside of a list of functions; each one's results are spelt out.
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

// Stock Lua closes the variables of a coroutine that failed when that is closed, or never.
TEST(SandboxUnlikeStockLua, ACoroutineThatFailsClosesItsVariables) {
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

// Weak tables are strong ones (library.cpp, disableWeakTables).
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

// Random calls of the table functions that are our own.
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

// ---- filters

class LuaFilterTest : public LuaTest {
 protected:
  Verdict verdictOf(const std::string& body, const std::string& input = R"({"a":1})") {
    scripts.write("filter", "return function(job)\n" + body + "\nend");
    const auto factory = filters();
    return review(*factory->make("filter"), input);
  }
};

TEST_F(LuaFilterTest, AcceptsAndRejects) {
  EXPECT_EQ(verdictOf("").text, "accepted");
  EXPECT_EQ(verdictOf("return nil").text, "accepted");
  EXPECT_EQ(verdictOf("return true").text, "accepted");
  EXPECT_EQ(verdictOf("return false, 'say please'").text, "rejected: say please");
  EXPECT_EQ(verdictOf("return false").text, "rejected: the filter filter refuses this job");
  EXPECT_EQ(verdictOf("return false, {}").text, "rejected: the filter filter refuses this job");
  EXPECT_EQ(verdictOf("return false, ('x'):rep(10000)").text.size(), 10U + 4096U);
}

TEST_F(LuaFilterTest, SeesTheJob) {
  policy.executionTimeout = Millis(7000);
  policy.priority = -3;
  EXPECT_EQ(verdictOf(R"(
    local p = job.policy
    return false, json.encode{job.size, job.endpoint, job.key, job.env.CITY, job.input, p.executionTimeout, p.priority,
                              p.lowPriority, tostring(job.none)})")
                .text,
            R"(rejected: [7,"the-endpoint","key-1","Ulm",{"a":1},7000,-3,false,"nil"])");
}

TEST_F(LuaFilterTest, ReplacesInputAndPolicy) {
  const Verdict both =
      verdictOf(R"(job.input.b = json.array() return {input = job.input, policy = {priority = 5, ttl = 20000}})");
  EXPECT_EQ(both.text, "replaced");
  EXPECT_EQ(both.change.input, R"({"a":1,"b":[]})");
  ASSERT_TRUE(both.change.policy);
  EXPECT_EQ(both.change.policy->priority, 5);
  EXPECT_EQ(both.change.policy->ttl, Millis(20'000));
  EXPECT_EQ(both.change.policy->executionTimeout, policy.executionTimeout);
  const Verdict none = verdictOf("return {}");
  EXPECT_EQ(none.text, "replaced");
  EXPECT_FALSE(none.change.input || none.change.policy);
}

TEST_F(LuaFilterTest, WrongVerdictsAreNamed) {
  EXPECT_EQ(verdictOf("return 5").text, "threw: it returned a number");
  EXPECT_EQ(verdictOf("return 'no'").text, "threw: it returned a string");
  EXPECT_EQ(verdictOf("return {inputs = {}}").text,
            "threw: it returned a table with an unknown field inputs: input and policy are known");
  EXPECT_EQ(verdictOf("return {1}").text,
            "threw: it returned a table with an unknown field number: input and policy are known");
  EXPECT_EQ(verdictOf("return {policy = 5}").text, "threw: the policy that it returned is no table");
  EXPECT_EQ(verdictOf("return {policy = {priority = 'x'}}").text, "threw: policy.priority is no whole number");
  EXPECT_EQ(verdictOf("return {policy = {ttl = 1.5}}").text, "threw: policy.ttl is no whole number");
  EXPECT_EQ(verdictOf("return {policy = {lowPriority = 1}}").text,
            "threw: policy.lowPriority is neither true nor false");
  EXPECT_EQ(verdictOf("return {policy = {speed = 1}}").text,
            "threw: the policy that it returned has an unknown field speed");
  EXPECT_EQ(verdictOf("return {input = print}").text, "threw: a function is not JSON");
  EXPECT_EQ(verdictOf("\nerror('sorry')").text, "threw: filter.lua:3: sorry");
}

TEST_F(LuaFilterTest, ABudgetThatIsOverrunNamesTheTime) {
  EXPECT_EQ(verdictOf("while true do end").text, "threw: it took more than 5 ms of processor time (lua.filterTime)");
  const std::string large = R"({"a":")" + std::string(2U << 20, 'x') + "\"}";
  EXPECT_EQ(verdictOf("while true do local x = job.input end", large).text,
            "threw: it took more than 45 ms of processor time (lua.filterTime)");
  EXPECT_EQ(verdictOf("while true do job.input = nil local x = job.input end", large).text,
            "threw: it took more than 45 ms of processor time (lua.filterTime)");
}

TEST_F(LuaFilterTest, QuotasCountInTheirWindow) {
  scripts.write("tenant", R"(return function(job)
    local free, wait = quota.take(job.input.tenant, 2, 60)
    if not free then return false, 'wait ' .. wait end
  end)");
  scripts.write("other", "return function(job) return quota.take(job.input.tenant, 1, 60), 'no' end");
  const auto factory = filters();
  const auto one = factory->make("tenant");
  const auto two = factory->make("tenant");
  const auto other = factory->make("other");
  EXPECT_EQ(review(*one, R"({"tenant":"a"})").text, "accepted");
  clock.advance(Millis(10'000));
  EXPECT_EQ(review(*two, R"({"tenant":"a"})").text, "accepted");
  EXPECT_EQ(review(*one, R"({"tenant":"a"})").text, "rejected: wait 50.0");
  EXPECT_EQ(review(*one, R"({"tenant":"b"})").text, "accepted");
  EXPECT_EQ(review(*other, R"({"tenant":"a"})").text, "accepted");
  clock.advance(Millis(49'999));
  EXPECT_EQ(review(*two, R"({"tenant":"a"})").text, "rejected: wait 0.001");
  clock.advance(Millis(1));
  EXPECT_EQ(review(*two, R"({"tenant":"a"})").text, "accepted");
  scripts.write("wrong", "return function(job) return quota.take(job.input.tenant, 1, job.input.seconds) end");
  const auto wrong = factory->make("wrong");
  EXPECT_EQ(review(*wrong, R"({"tenant":"a","seconds":0})").text,
            "threw: wrong.lua:1: bad argument #3 to 'take' (from 0.001 to 604800 seconds)");
  EXPECT_EQ(review(*wrong, R"({"tenant":")" + std::string(257, 'x') + R"(","seconds":1})").text,
            "threw: wrong.lua:1: bad argument #1 to 'take' (a name has at most 256 bytes)");
}

TEST(QuotasTest, ForgetTheEarliestOfTooManyNames) {
  testkit::ManualClock clock;
  Quotas quotas(clock);
  EXPECT_EQ(quotas.take("kept", 1, Millis(100'000)), Millis(0));
  EXPECT_EQ(quotas.take("earliest", 1, Millis(1'000)), Millis(0));
  for (int i = 0; i < 99'998; ++i) ASSERT_EQ(quotas.take(std::to_string(i), 1, Millis(50'000)), Millis(0));
  EXPECT_EQ(quotas.take("earliest", 1, Millis(1'000)), Millis(1'000));
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 2'000; ++i) ASSERT_EQ(quotas.take("new " + std::to_string(i), 1, Millis(50'000)), Millis(0));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5))
      << "a flood of names must not cost a scan each";
  EXPECT_EQ(quotas.take("earliest", 1, Millis(1'000)), Millis(0)) << "it was forgotten";
  EXPECT_EQ(quotas.take("kept", 1, Millis(100'000)), Millis(100'000));
}

}  // namespace
}  // namespace jobq::lua::test

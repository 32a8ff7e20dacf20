// The rules of handlers: the job's methods, errors, stop and deadline, and the isolation of each job from the next.

#include <optional>

#include "jobq/json.h"
#include "lua_fixture.h"

namespace jobq::lua::test {
namespace {

using Strings = std::vector<std::string>;

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
  FakeJobContext context({.attempt = 7, .deadline = clock.now() + Millis(1500)});
  EXPECT_EQ(handler->run(R"({"z":[],"a":{}})", context),
            R"({"attempt":7,"city":"Ulm","endpoint":"the-endpoint","id":"11111111-2222-3333-4444-555555555555-u1",)"
            R"("input":{"a":{},"z":[]},"left":1500,"stopped":false})");
  EXPECT_EQ(reportsOf(context),
            (Strings{"log a\t1\tnil\ttrue", "log b\t2.5", "{\"n\":1} {\"tokens\":3}", "null", "progress \"half\""}));
}

TEST_F(LuaTest, MethodsAreCalledWithAColon) {
  EXPECT_EQ(once("return function(input, job)\n job.emit(1)\nend"),
            "FAILED: once.lua:2: bad argument #1 to 'emit' (use job:emit(...), with a colon)");
}

TEST_F(LuaTest, AScriptThatLooksEndsByItselfWhenStopped) {
  scripts.write("patient", R"(return function(input, job)
    print('begun') while not job:stopped() do end return 'ended'
  end)");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("patient"));
  FakeJobContext context;
  context.observe([&context](const FakeJobContext::Report&) { context.stop(); });
  EXPECT_EQ(outcome(*handler, "{}", context), "\"ended\"");
}

TEST_F(LuaTest, AScriptThatDoesNotLookIsStopped) {
  scripts.write("deaf",
                "return function(input) if input.go then print('begun') while true do end end return 'fine' end");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("deaf"));
  FakeJobContext context;
  context.observe([&context](const FakeJobContext::Report&) { context.stop(); });
  EXPECT_EQ(outcome(*handler, R"({"go":1})", context), "FAILED: the job was stopped");
  FakeJobContext next;
  EXPECT_EQ(outcome(*handler, "{}", next), "\"fine\"");
}

// The server makes the job TIMED_OUT because the deadline has passed, whatever the handler returns.
TEST_F(LuaTest, ADeadlineEndsTheScript) {
  scripts.write("late",
                "return function(input) if input.go then print('begun') while true do end end return 'fine' end");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("late"));
  FakeJobContext context({.deadline = clock.now() + Millis(60'000)});
  context.observe([this](const FakeJobContext::Report&) { clock.advance(Millis(60'000)); });
  EXPECT_EQ(outcome(*handler, R"({"go":1})", context), "FAILED: " + std::string(kOverTime));
  FakeJobContext next;
  EXPECT_EQ(outcome(*handler, "{}", next), "\"fine\"");
}

TEST_F(LuaTest, ErrorsSayWhere) {
  EXPECT_EQ(once("return function()\n\n  error('no luck')\nend"), "FAILED: once.lua:3: no luck");
  EXPECT_EQ(once("return function(input)\n  return input.a.b\nend"),
            "FAILED: once.lua:2: attempt to index a nil value (field 'a')");
  EXPECT_EQ(once("return function() error('plain', 0) end"), "FAILED: plain");
  EXPECT_EQ(once("return function() error({code = 5}) end"), R"(FAILED: {"code":5})");
  EXPECT_EQ(once("return function() error() end"), "FAILED: the error is a nil");
  EXPECT_EQ(once("return function() error(json.null) end"), "FAILED: the error is a json.null");
  EXPECT_EQ(once("return function() error('', 0) end"), "FAILED: the error is an empty text");
  EXPECT_EQ(once("return function() error(0/0) end"), "FAILED: the error is a number, and nan is not JSON");
  EXPECT_EQ(once("return function() local t = {} t.t = t error(t) end"),
            "FAILED: the error is a table, and the value is nested deeper than 512 levels, or contains itself");
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
  EXPECT_EQ(fails("x = 1"), "bad.lua returns no function: end the script with `return function(...) ... end`");
  EXPECT_EQ(fails("while true do end"), "the first lines of the script take longer than a second, before any job");
  std::string expression = "return function() return a";
  for (int i = 0; i < 190'000; ++i) expression += " or a";
  EXPECT_EQ(fails(expression + " end"), "the script takes longer than a second to compile");
  EXPECT_EQ(fails("\x1bLua" + std::string(100, '\0')), "bad.lua is bytecode: only text is loaded");
  EXPECT_EQ(fails("return function() end -- " + std::string(1U << 20, 'x')), "bad.lua is larger than 1 MB: split it");
}

TEST_F(LuaTest, FirstLinesHaveTheMemoryOfAScript) {
  scripts.write("large", "local s = ('x'):rep(1000):rep(20000) return function() return #s end");
  EXPECT_EQ(handlers()->fault("large"), std::nullopt);
  EXPECT_EQ(handlers(with({{"memory", "17825792"}}))->fault("large"),
            "not enough memory: a script has 17 MB (lua.memory)");
}

// Strings are written in pieces of 64 KB: tests all kinds of characters at the seams.
TEST_F(LuaTest, LongStringsAreWrittenWhole) {
  for (const std::string piece : {"x", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x01", "\"", "\\"}) {
    for (const int size : {65'533, 65'534, 65'535, 65'536, 65'537, 131'072, 200'000}) {
      std::string text;
      while (text.size() < static_cast<std::size_t>(size)) text += piece;
      const std::string input = "{\"s\":" + json::quoted("a" + text) + "}";
      EXPECT_EQ(once("return function(input) return {s = 'a' .. input.s:sub(2)} end", input), input) << piece << size;
    }
  }
}

TEST_F(LuaTest, LogIsTheJobsOwnWhateverPrintIs) {
  scripts.write("wrap", R"(return function(input, job)
    print = function(...) job:log('mine', ...) end
    print('x')
    print = nil
    job:log('y')
  end)");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("wrap"));
  FakeJobContext context;
  EXPECT_EQ(outcome(*handler, "{}", context), "null");
  EXPECT_EQ(reportsOf(context), (Strings{"log mine\tx", "log y"}));
}

// ---- isolation of successive jobs

TEST_F(LuaTest, AJobSeesNoDataOfAFormerJob) {
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
  FakeJobContext context;
  EXPECT_EQ(outcome(*handler, "{}", context), "FAILED: leave.lua:11: cannot change a protected metatable");
  EXPECT_EQ(outcome(*handler, R"({"look":1})", context), R"(["nil","nil","nil","nil","nil","nil","nil","nil"])");
}

// Little garbage stays until the next environment replaces the old environment, much garbage goes at once. No size is
// in the way of the next job.
TEST_F(LuaTest, LeftoversOfAJobTakeNoMemoryFromTheNextJob) {
  scripts.write("leave", R"(return function(input)
    assert(left == nil)
    left = {}
    for i = 1, input.texts do left[i] = ('%05d'):format(i):rep(200) end  -- 1 KB each
    return #left
  end)");
  const auto factory = handlers(with({{"memory", "1048576"}}));
  const auto handler = factory->make(envFor("leave"));
  FakeJobContext context;
  for (const std::string texts : {"1", "100", "150", "200", "300", "500", "700", "750", "1", "750", "200", "750"}) {
    for (int times = 0; times < 5; ++times) {
      EXPECT_EQ(outcome(*handler, R"({"texts":)" + texts + "}", context), texts);
    }
  }
}

TEST_F(LuaTest, AStringMayBeAsLongAsTheMemory) {
  scripts.write("long", R"(return function()
    local s = ('x'):rep(80000000)
    return {#s:sub(2), #s:upper(), s:byte(-1), pcall(string.char, ('0'):rep(70000000) .. 65)}
  end)");
  const auto factory = handlers(with({{"memory", "1073741824"}}));
  FakeJobContext context;
  EXPECT_EQ(outcome(*factory->make(envFor("long")), "{}", context), R"([79999999,80000000,120,true,"A"])");
}

// Lua distinguishes 31 bits of a float: all times of one second meet.
TEST_F(LuaTest, TimesOfEventsMayBeKeys) {
  EXPECT_EQ(once(R"(return function()
    local t, n = {}, 0
    for i = 0, 49999 do t[1700000000 + i / 1000] = i end
    for k in pairs(t) do n = n + 1 end
    return n
  end)"),
            "50000");
}

TEST_F(LuaTest, FormatMeasuresTheTextsOfObjects) {
  scripts.write("format", R"(return function()
    local keep = ('x'):rep(70000000)
    local object = setmetatable({}, {__tostring = function() return 'object' end})
    return {string.format('%s, %5.2s|', object, object), #string.format('%s', json.array()) > 0, (pcall(string.format, '%d', object)), (pcall(string.format, object))}
  end)");
  const auto factory = handlers(with({{"memory", "1073741824"}}));
  FakeJobContext context;
  EXPECT_EQ(outcome(*factory->make(envFor("format")), "{}", context), R"(["object,    ob|",true,false,false])");
}

// _G exists on demand, although no environment holds the name before its first use.
TEST_F(LuaTest, TheNameGDenotesTheGlobals) {
  EXPECT_EQ(once(R"(return function()
    local of = {_G == _ENV, _G._G == _G, rawequal(_G, load('return _G')()), load('return _G', 'x', 't', {})() == nil}
    coroutine.wrap(function() of[#of + 1] = _G == _ENV end)()
    name = 'mine'
    of[#of + 1] = _G.name == 'mine' and _G['name'] == 'mine' and unknown == nil and _G.unknown == nil and _G[1] == nil
    _G = 5
    of[#of + 1] = _G == 5
    return of
  end)"),
            "[true,true,true,true,true,true,true]");
}

TEST_F(LuaTest, LibrariesCannotBeChanged) {
  scripts.write("change", R"(return function(input, job)
    local failed = {}
    local function try(what, ...) if pcall(...) then failed[#failed + 1] = what end end
    for _, name in ipairs{'string', 'table', 'math', 'utf8', 'coroutine', 'json', 'os'} do
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
    for _, name in ipairs{'io', 'package', 'debug', 'require', 'dofile', 'loadfile', 'collectgarbage', 'quota'} do
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
  FakeJobContext context;
  EXPECT_EQ(outcome(*handler, "{}", context), "[]");
}

// lua_load takes the globals from the registry's array without checking its length
// (plugins/lua/sandbox/environment.cpp, dropEnvironment).
TEST_F(LuaTest, LoadSeesTheGlobalsInEveryJob) {
  scripts.write("load",
                "return function() x = 5 return load('return x')() + load('return load(\"return x\")()')() end");
  const auto factory = handlers();
  const auto handler = factory->make(envFor("load"));
  for (int job = 0; job < 20; ++job) {
    FakeJobContext context;
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

}  // namespace
}  // namespace jobq::lua::test

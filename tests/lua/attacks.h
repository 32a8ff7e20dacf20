// Harmful scripts, and the required end of each script.
#pragma once

#include <ostream>

namespace jobq::lua::test {

enum class End { time, memory, stack, any };

struct Attack {
  const char* name;
  End end;
  const char* body;  // body of a function without arguments
};

inline void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.name; }

inline constexpr Attack kAttacks[] = {
    // Loops
    {"Loop", End::time, "while true do end"},
    {"EmptyGoto", End::time, "::again:: goto again"},
    {"LoopInPcall", End::time, "while true do pcall(function() while true do end end) end"},
    {"NestedPcalls", End::time, R"(
      local function again() while true do pcall(pcall, function() while true do pcall(again) end end) end end
      again())"},
    {"PcallOfC", End::time, "while true do pcall(pcall, pcall, error) end"},
    {"XpcallHandlerLoops", End::time, "xpcall(error, function() while true do end end)"},
    {"XpcallHandlerFails", End::any, "xpcall(error, function() xpcall(error, error) error(error) end)"},
    {"ErrorInErrorHandler", End::any, "local function h(e) error(e) end for i = 1, 1000 do xpcall(error, h) end"},
    {"HandlerOfHandler", End::any, "local function h() return xpcall(error, h) end h()"},
    {"LoopInMetamethod", End::time, "local x = setmetatable({}, {__index = function() while true do end end}).y"},
    {"LoopInSort", End::time, "table.sort({3, 2, 1}, function() while true do end end)"},
    {"LoopInGsub", End::time, "string.gsub('x', '.', function() while true do end end)"},
    {"LoopInTostring", End::time, "print(setmetatable({}, {__tostring = function() while true do end end}))"},
    {"LoopInFormat", End::time, R"(
      string.format('%s', setmetatable({}, {__tostring = function() while true do end end})))"},
    {"LoopInLess", End::time, R"(
      local m = {__lt = function() while true do end end} local a, b = setmetatable({}, m), setmetatable({}, m)
      return a < b)"},
    {"LoopInConcat", End::time, "return setmetatable({}, {__concat = function() while true do end end}) .. 'x'"},
    {"LoopInLength", End::time, "return #setmetatable({}, {__len = function() while true do end end})"},
    {"LoopInCall", End::time, "setmetatable({}, {__call = function(self) while true do pcall(self) end end})()"},
    {"LoopInPairs", End::time, "pairs(setmetatable({}, {__pairs = function() while true do end end}))"},
    {"EndlessIterator", End::time, "for _ in function() return 1 end do end"},
    {"EndlessIpairs", End::time, "for _ in ipairs(setmetatable({}, {__index = function() return 1 end})) do end"},
    // __close and __gc
    {"CloseLoops", End::time, "local x <close> = setmetatable({}, {__close = function() while true do end end})"},
    {"CloseLoopsAfterTheDeadline", End::time, R"(
      local x <close> = setmetatable({}, {__close = function() while true do end end})
      while true do end)"},
    {"CloseInCoroutineThatDies", End::time, R"(
      coroutine.wrap(function()
        local x <close> = setmetatable({}, {__close = function() while true do end end})
        while true do end
      end)())"},
    {"CloseInCoroutineThatFails", End::time, R"(
      local co = coroutine.create(function()
        local x <close> = setmetatable({}, {__close = function() while true do end end})
        error('x')
      end)
      coroutine.resume(co) coroutine.close(co))"},
    {"CloseOfSuspendedCoroutine", End::time, R"(
      local co = coroutine.create(function()
        local x <close> = setmetatable({}, {__close = function() while true do end end})
        coroutine.yield()
      end)
      coroutine.resume(co) coroutine.close(co))"},
    {"CloseRaisesForEver", End::time, R"(
      while true do
        pcall(function()
          local a <close> = setmetatable({}, {__close = function() error('a') end})
          local b <close> = setmetatable({}, {__close = function() error('b') end})
          error('c')
        end)
      end)"},
    {"Finalizer", End::any, R"(
      local ok, why = pcall(setmetatable, {}, {__gc = function() while true do end end})
      assert(not ok and why:find('__gc'))
      local m = {} for i = 1, 1000 do setmetatable({}, m) end
      m.__gc = function() while true do end end
      for i = 1, 100000 do local garbage = {} end)"},
    // Memory
    {"StringDoubles", End::memory, "local s = 'x' while true do s = s .. s end"},
    {"StringDoublesInPcall", End::time, "while true do pcall(function() local s='x' while true do s=s..s end end) end"},
    {"Rep", End::any, "return ('x'):rep(1e9)"},
    {"RepOverflows", End::any, "return ('xxxxxxxx'):rep(math.maxinteger // 4)"},
    {"RepOfNothing", End::any, "for i = 1, 1000 do local s = (''):rep(math.maxinteger, '') end"},
    {"Format", End::memory, "local s = 'x' while true do s = string.format('%s%s', s, s) end"},
    {"GsubGrows", End::memory, "local s = 'xx' while true do s = s:gsub('x', 'xxxx') end"},
    {"ConcatGrows", End::memory, "local s = 'xx' while true do s = table.concat({s, s, s}, s) end"},
    {"UpperGrows", End::memory, "local t = {} while true do t[#t + 1] = (('x'):rep(100000 + #t)):upper() end"},
    {"Tables", End::memory, "local t = {} while true do t = {t} end"},
    {"TableGrows", End::memory, "local t = {} for i = 1, math.huge do t[i] = i end"},
    {"Closures", End::memory, "local f while true do local g = f f = function() return g end end"},
    {"Keys", End::memory, "local t = {} local i = 0 while true do i = i + 1 t['k' .. i] = i end"},
    {"Varargs", End::time, "local function f(...) return f(1, 2, 3, ...) end f()"},
    {"Unpack", End::time, "while true do pcall(table.unpack, {}, 1, 999999) end"},
    {"FreeListsOfEverySize", End::memory, R"(
      for size = 480, 64, -16 do
        local t = {}
        for i = 1, 36000000 // (size + 40) do t[i] = ('x'):rep(size - 40) .. i end
      end
      error('not enough memory was not said'))"},
    {"NumberAsErrorWithoutMemory", End::any, R"(
      keep = {}
      for _, n in ipairs{1000000, 10000, 1000, 100, 41, 8} do
        pcall(function() local i = 1 while true do i = i + 1 keep[#keep + 1] = ('x'):rep(n) .. i end end)
      end
      error(424242))"},
    // Recursion
    {"Recursion", End::memory, "local function f() return 1 + f() end f()"},
    {"RecursionInPcall", End::time, "local function f() pcall(f) return f() + 1 end f()"},
    {"RecursionThroughIndex", End::stack, R"(
      local m = {} m.__index = function(t, k) return t[k + 1] end return setmetatable({}, m)[1])"},
    {"RecursionThroughGsub", End::stack, "local function f(x) return (x:gsub('.+', f)) end f('ab')"},
    {"RecursionThroughGsubTemplate", End::stack, R"(
      local function f(x) return (string.gsub(('x'):rep(250), '^(x?)(x?)(x?)(x?)(x?)(x?).-$', f)) end f())"},
    {"RecursionThroughSort", End::stack, R"(
      local function f() table.sort({1, 2, 3}, f) end f())"},
    {"RecursionThroughFormat", End::stack, R"(
      local m = {} m.__tostring = function(x) return string.format('%s', x) end return tostring(setmetatable({}, m)))"},
    {"RecursionThroughConcat", End::stack, R"(
      local m = {} m.__index = function(x) return table.concat(x, '', 1, 3) end
      return table.concat(setmetatable({}, m), '', 1, 3))"},
    {"RecursionThroughPrint", End::stack,
     "local m = {} m.__tostring = function(x) print(x) end print(setmetatable({}, m))"},
    {"RecursionThroughCoroutines", End::stack, R"(
      local function f() local r = table.pack(coroutine.resume(coroutine.create(f))) error(r[2], 0) end f())"},
    {"RecursionThroughWrap", End::stack, "local function f() coroutine.wrap(f)() end f()"},
    {"RecursionThroughXpcall", End::any, "local function f() xpcall(f, f) end f()"},
    {"RecursionThroughLess", End::stack, R"(
      local m = {} m.__lt = function(a, b) return a < b end local a = setmetatable({}, m) return a < a)"},
    {"RecursionThroughClose", End::any, R"(
      local function f() local x <close> = setmetatable({}, {__close = f}) end f())"},
    {"RecursionThroughLoad", End::memory, "text = 'load(text)()' load(text)()"},
    {"DeepText", End::any, R"(
      for _, part in ipairs{'(', '{', '-', 'not ', 'f(', 'a[', 'function() ', 'do ', 'if a then ', '2^', "''.."} do
        assert(not load('return ' .. part:rep(200000)))
      end)"},
    {"DeepCalls", End::any, "load('local f = ... return f' .. ('()'):rep(100000))(function() end)"},
    {"DeepPattern", End::any, "pcall(string.find, ('a'):rep(300000), ('.-'):rep(100000) .. 'b')"},
    {"IndexChain", End::any, R"(
      local t = {} for i = 1, 100000 do t = setmetatable({}, {__index = t}) end
      for i = 1, 1000 do pcall(function() return t.x end) end)"},
    // Coroutines
    {"TreeOfShortCoroutines", End::time, R"(
      local function f(depth) if depth > 0 then for i = 1, 12 do coroutine.wrap(f)(depth - 1) end end end
      f(30))"},
    {"TreeOfResumes", End::time, R"(
      local function f(depth)
        if depth > 0 then for i = 1, 12 do coroutine.resume(coroutine.create(f), depth - 1) end end
      end
      f(30))"},
    {"ChainOfCloses", End::any, R"(
      local co
      for i = 1, 20000 do
        local before = co
        co = coroutine.create(function()
          local x <close> = setmetatable({}, {__close = function() if before then coroutine.close(before) end end})
          coroutine.yield()
        end)
        coroutine.resume(co)
      end
      coroutine.close(co))"},
    {"ChainOfClosesThroughGsub", End::any, R"(
      local co
      local function deep(n, f) if n == 0 then return f() end return (('x'):gsub('x', function() deep(n - 1, f) end)) end
      for i = 1, 1000 do
        local before = co
        co = coroutine.create(function()
          local x <close> = setmetatable({}, {__close = function()
            if before then deep(150, function() coroutine.close(before) end) end
          end})
          coroutine.yield()
        end)
        coroutine.resume(co)
      end
      coroutine.close(co))"},
    {"ManyCoroutines", End::memory, "local t = {} while true do t[#t + 1] = coroutine.wrap(print) end"},
    {"PingPong", End::time, R"(
      local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end)"},
    {"LoopInCoroutineInPcall", End::time, R"(
      while true do pcall(coroutine.wrap(function() while true do pcall(error) end end)) end)"},
    {"WrapInWrap", End::time, R"(
      local f = function() while true do coroutine.yield(1) end end
      for i = 1, 100 do local g = coroutine.wrap(f) f = function() while true do coroutine.yield(g()) end end end
      while true do pcall(f) end)"},
    {"WrapOfItself", End::any, "local w w = coroutine.wrap(function() w() end) pcall(w)"},
    {"ResumeOfMain", End::any, R"(
      local main = coroutine.running()
      coroutine.wrap(function() assert(not coroutine.resume(main)) assert(not pcall(coroutine.close, main)) end)())"},
    // C functions with work that grows
    {"MoveFar", End::time, "table.move({}, 1, 1e15, 2)"},
    {"MoveNothing", End::time, "table.move(setmetatable({}, {__newindex = function() end}), 1, 1e15, 2)"},
    {"ConcatFar", End::time, R"(
      table.concat(setmetatable({}, {__index = function() return '' end}), '', 1, math.maxinteger))"},
    {"InsertFar", End::time, "table.insert(setmetatable({}, {__len = function() return 1e15 end}), 1, 1)"},
    {"RemoveFar", End::time, "table.remove(setmetatable({}, {__len = function() return 1 << 60 end}), 1)"},
    {"UnpackFar", End::any, "pcall(table.unpack, {}, math.mininteger, math.maxinteger)"},
    {"SortFar", End::any, R"(
      for _, n in ipairs{1e5, 1e15, math.maxinteger, -1} do
        pcall(table.sort, setmetatable({}, {__len = function() return math.tointeger(n) end}), function() end)
      end)"},
    {"SortLies", End::any, R"(
      local t = {} for i = 1, 20000 do t[i] = i end
      for _, order in ipairs{function() return true end, function() return false end, rawequal, rawlen, type} do
        pcall(table.sort, t, order)
      end)"},
    {"SortOfLongStrings", End::time, R"(
      local t, same = {}, ('\0'):rep(100000)
      for i = 1, 300 do t[i] = same .. (i * 7919 % 300) end
      while true do table.sort(t) table.sort(t, function(a, b) return a > b end) end)"},
    {"CompareZeros", End::time, "local s = ('\\0'):rep(30000000) while true do local x = s < s end"},
    {"HashOfLongKeys", End::time, R"(
      local s, t = ('x'):rep(20000000), {} while true do local key = s .. 'a' local x = t[key] end)"},
    {"NumbersOfZeros", End::time, "local s = ('0'):rep(30000000) while true do local x = s + 0 end"},
    {"PackPads", End::time, "while true do local s = string.pack('c20000000', 'x') end"},
    {"PackPadsAndFails", End::time, "while true do pcall(string.pack, 'c20000000 i17', 'x', 1) end"},
    {"SearchOfAnEmptiedTable", End::time, R"(
      local t = {} for i = 1, 500000 do t[i + 0.5] = 1 end for i = 1, 500000 do t[i + 0.5] = nil end
      while true do next(t) end)"},
    {"EncodeOfEmptiedTables", End::time, R"(
      local t, a = {}, {}
      for i = 1, 500000 do t[i + 0.5] = 1 end for i = 1, 500000 do t[i + 0.5] = nil end
      for i = 1, 100000 do a[i] = t end
      while true do json.encode(a) end)"},
    {"WeakKeysInAChain", End::time, R"(
      local keys = {} for i = 1, 50000 do keys[i] = {} end
      for i = #keys, 2, -1 do local j = i * 7919 % i + 1 keys[i], keys[j] = keys[j], keys[i] end
      local weak = setmetatable({}, {__mode = 'k'})
      for i = 1, #keys - 1 do weak[keys[i]] = keys[i + 1] end
      local root = keys[1]
      keys = nil
      while true do local garbage = {} end)"},
    {"OpenUpvalues", End::time, R"(
      local low = 1
      local function deep(n)
        local a, b, c, d = 1, 2, 3, 4
        local f, g, h, i = function() return a end, function() return b end, function() return c end, function() return d end
        if n > 0 then return deep(n - 1) + 1 end
        while true do local f = function() return low end end
      end
      deep(15000))"},
    {"PatternExplodes", End::time, "string.find(('a'):rep(60), ('a*'):rep(30) .. 'b')"},
    {"PatternQuadratic", End::time, "while true do string.find(('a'):rep(200000), 'a*b') end"},
    {"PlainFindQuadratic", End::time, R"(
      while true do string.find(('a'):rep(400000), ('a'):rep(200000) .. 'b', 1, true) end)"},
    {"BalanceQuadratic", End::time, "while true do string.find(('('):rep(300000), '%b()') end"},
    {"GmatchForEver", End::time, "while true do for x in (('a'):rep(100000)):gmatch('a-b') do end end"},
    {"Utf8", End::time, R"(
      local s = ('\x80'):rep(20000000) while true do pcall(utf8.len, s, 1, -1, true) pcall(utf8.codes(s), s, 1) end)"},
    {"LoadForEver", End::time, "local text = ('x = 1 '):rep(100000) while true do load(text) end"},
    {"LoadOfALongExpression", End::time, "while true do load('return ' .. ('a or '):rep(190000) .. 'a') end"},
    {"LoadOfManyNames", End::time, R"(
      local names = {} for i = 1, 198 do names[i] = 'v' .. i end
      local text = ('local function f() local ' .. table.concat(names, ',') .. ' '):rep(100)
      while true do load(text .. ('b=b '):rep(100000)) end)"},
    {"FormatMeasures", End::any, R"(
      local t, s = {}, ('x'):rep(3000000) for i = 1, 15000 do t[i] = s end
      assert(not pcall(string.format, ('%.0s'):rep(15000), table.unpack(t))))"},
    {"FormatOfNames", End::any, R"(
      local x = setmetatable({}, {__name = ('x'):rep(1000000)})
      local t = {} for i = 1, 15000 do t[i] = x end
      assert(not pcall(string.format, ('%.0s'):rep(15000), table.unpack(t))))"},
    {"FormatOfTables", End::any, R"(
      local x = setmetatable({}, {__tostring = getmetatable, __metatable = ('x'):rep(8000000)})
      local t = {} for i = 1, 15000 do t[i] = x end
      assert(not pcall(string.format, ('%.0s'):rep(15000), table.unpack(t))))"},
    {"NextIsTheIndex", End::time, R"(
      local t = {} for i = 1, 500000 do t[i] = true end for i = 1, 499999 do t[i] = nil end
      setmetatable(t, {__index = next})
      while true do pcall(table.concat, t, '', 1, 4900) pcall(string.gsub, ('x'):rep(4900), 'x', t) end)"},
    {"PairsOfWhatIsEmpty", End::time, R"(
      local t = {} for i = 1, 500000 do t[i] = true end for i = 1, 500000 do t[i] = nil end
      while true do for _ in pairs(t) do end next(t) end)"},
    {"ChainOfTables", End::time, R"(
      local t = {} for i = 1, 1500 do t = setmetatable({}, {__index = t}) end
      while true do table.move(t, 1, 100000, 2, {}) pcall(string.gsub, ('x'):rep(100000), 'x', t) table.unpack(t, 1, 9999) end)"},
    {"SelectMany", End::time, R"(
      local function f(...) while true do local x = select('#', ...) local y = select(-1, ...) end end
      local t = {} for i = 1, 240000 do t[i] = i end
      f(table.unpack(t)))"},
    // Instructions and calls without an interruption by Lua
    {"TableThatIsCalled", End::any, R"(
      local m = {} local t = setmetatable({}, m) m.__call = t
      assert(not pcall(t) and not pcall(setmetatable, {}, m))
      for name in pairs(setmetatable(m, {__call = print})) do assert(name == '__call') end)"},
    {"KeysThatMeet", End::any, "local t = {} for i = 1, 700000 do t[i * ((1 << 19) - 1)] = true end"},
    {"KeysThatMeetInPcall", End::time, R"(
      local function fill(k) local t = {} for i = 1, 1 << 20 do t[i * ((1 << k) - 1)] = true end end
      while true do for k = 13, 17 do pcall(fill, k) end end)"},
    {"KeysThatMeetLater", End::any, R"(
      local t = {} for i = 1, 700000 do t[i] = i end
      for i = 1, 120000 do t[i * ((1 << 20) - 1)] = true end
      for i = 2, 700000 do if i % 3 > 0 then t[i] = nil end end
      for i = 1, 700000 do t[i + 0.5] = true end)"},
    {"FloatsThatMeet", End::any, "local t = {} for i = 1, 300000 do t[1 + i * 2.0^-52] = i end"},
    {"ManyLargeTables", End::time, R"(
      local t, n = {}, 0 for i = 1, 100 do t[i] = {} for j = 1, 4097 do t[i][j + 0.5] = true end end
      local r = {} for i = 1, 16384 do r[i + 0.5] = true end
      while true do n = n + 1 r[n + 0.5] = nil r[n + 16384.5] = true end)"},
    {"MaxOfZeros", End::time, R"(
      local t, s = {}, ('\0'):rep(1000000) for i = 1, 3000 do t[i] = s end
      while true do math.max(table.unpack(t)) math.min(table.unpack(t)) end)"},
    {"MaxWithoutMemory", End::time, R"(
      local m, b, t = {__lt = pcall, __call = table.insert}, {}, {}
      for i = 1, 1 << 19 do b[i] = i end setmetatable(b, m) for i = 1, 500 do t[i] = b end
      local room = ('x'):rep(100000)
      pcall(function() local keep while true do keep = {keep} end end)
      room = nil while true do pcall(math.max, table.unpack(t)) end)"},
    {"ConcatWithoutMemory", End::time, R"(
      local a = {} for i = 1, 1 << 19 do a[i] = i end
      local concat = load('local a = ... return a' .. (' .. a'):rep(170))
      setmetatable(a, {__concat = pcall, __call = table.insert})
      local room = ('x'):rep(100000)
      pcall(function() local keep while true do keep = {keep} end end)
      room = nil while true do pcall(concat, a) end)"},
    {"CharsOfLongNumerals", End::any, R"(
      local t, s = {}, ('0'):rep(1000000) .. '65' for i = 1, 15000 do t[i] = s end
      assert(not pcall(string.char, table.unpack(t)) and not pcall(utf8.char, table.unpack(t)))
      assert(not pcall(string.pack, ('b'):rep(#t), table.unpack(t))))"},
    {"RoundingOfLongNumerals", End::time, R"(
      local s = ('0'):rep(1000000) .. '.5'
      while true do
        local f, g, h = math.floor, math.tointeger, math.fmod
        f(s) f(s) f(s) f(s) f(s) f(s) f(s) f(s) g(s) g(s) g(s) g(s) g(s) g(s) g(s) h(s, 1) h(s, 1) h(s, 1) h(s, 1)
      end)"},
    {"FormatAfterARefusal", End::any, R"(
      pcall(string.rep, 'x', 1e9)
      assert(string.format('%s', setmetatable({}, {__tostring = function() return 'text' end})) == 'text')
      local x = setmetatable({}, {__tostring = getmetatable, __metatable = ('x'):rep(5000000)})
      local t = {} for i = 1, 100000, 2 do t[i] = x t[i + 1] = 'a' end
      assert(not pcall(string.format, ('%.0s'):rep(#t), table.unpack(t))))"},
    {"CoroutinesOfFewInstructions", End::time, R"(
      local s = ('\0'):rep(200000)
      local function leaf() local x = s < s or s < s or s < s or s < s or s < s or s < s or s < s or s < s or s < s end
      while true do
        local leaves, mids = {}, {}
        for i = 1, 1200 do leaves[i] = coroutine.wrap(leaf) end
        for i = 1, 30 do mids[i] = coroutine.wrap(function(from) for j = from, from + 38 do leaves[j]() end end) end
        for i = 1, 30 do mids[i]((i - 1) * 40 + 1) end
      end)"},
    {"ComparisonsInOneBreath", End::time, R"(
      local s = ('\0'):rep(1000000)
      local f = load('local s = ... return s < s' .. (' or s < s'):rep(160))
      while true do f(s) end)"},
    {"IndexOfLongKeys", End::time, R"(
      local p = ('x'):rep(1000000)
      local k, m = p .. 'b', {} local t = setmetatable({[p .. 'a'] = 1}, m) m.__index = t
      while true do pcall(function() return t[k] end) end)"},
    {"PackSize", End::time, R"(
      local f, p = ('b'):rep(1000000), string.packsize
      while true do p(f) p(f) p(f) p(f) p(f) p(f) p(f) p(f) p(f) p(f) p(f) p(f) p(f) p(f) p(f) p(f) p(f) p(f) end)"},
    {"SortBehindAChain", End::time, R"(
      local top = {} for i = 1, 3000 do top[i] = i * 7919 % 3000 end
      for i = 1, 1900 do top = setmetatable({}, {__index = top, __newindex = top}) end
      local t = setmetatable({}, {__index = top, __newindex = top, __len = function() return 3000 end})
      while true do table.sort(t) end)"},
    {"VariablesToClose", End::time, R"(
      local x = setmetatable({}, {__close = function() end})
      local function deep(n)
        local a <close> = x local b <close> = x local c <close> = x local d <close> = x local e <close> = x
        if n > 0 then deep(n - 1) end while true do end
      end
      deep(2000))"},
    // JSON
    {"EncodeOfACycle", End::any, "local t = {} t.t = t assert(not pcall(json.encode, t))"},
    {"EncodeGrows", End::any, "local t = {1} for i = 1, 40 do t = {t, t} end assert(not pcall(json.encode, t))"},
    {"EncodeForEver", End::time, R"(
      local t = {1} for i = 1, 17 do t = {t, t} end while true do pcall(json.encode, t) end)"},
    {"EncodeOfControlCharacters", End::any, R"(
      for i = 1, 3 do assert(not pcall(json.encode, ('\1'):rep(30000000))) end)"},
    {"DecodeDeep", End::any, "for _, d in ipairs{513, 100000} do assert(not pcall(json.decode, ('['):rep(d))) end"},
    {"DecodeLong", End::any, R"(
      local text = '[' .. ('0,'):rep(14000000) .. '0]' assert(not pcall(json.decode, text)))"},
    {"DecodeForEver", End::time, "local t = '[' .. ('0,'):rep(100000) .. '0]' while true do json.decode(t) end"},
    {"PrintLong", End::any, "for i = 1, 3 do pcall(print, ('x'):rep(2000000)) end"},
    {"ErrorLong", End::any, "error(('x'):rep(10000000))"},
    {"ErrorOfATableWithoutEnd", End::time, R"(
      local e, t, u = {}, {}, {}
      for i = 1, 4000 do e[i] = true end for i = 1, 4000 do e[i] = nil end
      for i = 1, 4000 do t[i] = e end for i = 1, 4000 do u[i] = t end
      error(u))"},
    {"ErrorOfATable", End::any, "error(setmetatable({}, {__tostring = function() while true do end end}))"},
};

}  // namespace jobq::lua::test

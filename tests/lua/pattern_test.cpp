// The pattern functions, rule by rule of the manual (6.4, 6.4.1). Each line is an expression and its result; the stock
// functions have to agree.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "twin_states.h"

namespace {

using jobq::lua::literal;
using jobq::lua::TwinStates;

struct Line {
  const char* expression;
  const char* answer;
};

// Expected errors are written without a place.
void check(const std::vector<Line>& lines) {
  TwinStates twins;
  for (const Line& line : lines) {
    std::string answer = twins.answer(line.expression);
    const std::string place = "test:1: ";
    for (std::size_t at = 0; (at = answer.find(place)) != std::string::npos;) answer.erase(at, place.size());
    EXPECT_EQ(answer, line.answer) << line.expression;
  }
}

std::string times(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Pattern, FindTellsWhere) {
  check({{"('hello'):find('l')", "true integer 3 integer 3"},
         {"('hello'):find('xyz')", "true nil"},
         {"('hello'):find('')", "true integer 1 integer 0"},
         {"(''):find('')", "true integer 1 integer 0"},
         {"('hello'):find('l+')", "true integer 3 integer 4"},
         {"('hello'):find('(l)(l)')", "true integer 3 integer 4 \"l\" \"l\""},
         {"('hello'):find('(h)(.*)')", "true integer 1 integer 5 \"h\" \"ello\""},
         {"('hello'):find('()ll()')", "true integer 3 integer 4 integer 3 integer 5"},
         {"('a.b'):find('.', 1, true)", "true integer 2 integer 2"},
         {"('a.b'):find('%.')", "true integer 2 integer 2"},
         {"('a)b]c'):find(')b]')", "true integer 2 integer 4"},
         {"('a^b'):find('^', 1, true)", "true integer 2 integer 2"},
         {"('aXb'):find('X', 1, 0)", "true integer 2 integer 2"},
         {"('ab\\0cd'):find('\\0c')", "true integer 3 integer 4"},
         {"('ab\\0cd'):find('%z')", "true integer 3 integer 3"},
         {"('aaab'):find('aab', 1, true)", "true integer 2 integer 4"},
         {"string.find(12345, 34)", "true integer 3 integer 4"},
         {"string.find('hello', 'l', '4')", "true integer 4 integer 4"}});
}

TEST(Pattern, InitCountsFromBothEnds) {
  TwinStates twins;
  for (const char* init : {"-100", "-6", "-5", "-1", "0", "1", "3", "5", "6", "7", "100", "math.maxinteger",
                           "math.mininteger", "2.0", "nil"}) {
    for (const char* pattern : {"''", "'l'", "'.'", "'^l'", "'^'", "'()'", "'$'", "'%f[%w]'", "'%f[%z]'", "'o$'"}) {
      const std::string arguments = std::string("('hello', ") + pattern + ", " + init + ")";
      twins.answer("string.find" + arguments);
      twins.answer("string.match" + arguments);
      twins.answer("all(string.gmatch" + arguments + ")");
      twins.answer("string.find('hello', " + std::string(pattern) + ", " + init + ", true)");
    }
  }
  EXPECT_EQ(twins.answer("('hello'):find('l', -2)"), "true integer 4 integer 4");
  EXPECT_EQ(twins.answer("('hello'):find('', 6)"), "true integer 6 integer 5");
  EXPECT_EQ(twins.answer("('hello'):find('', 7)"), "true nil");
}

// Tests every class, capital or not, against every byte; other letters after % stand for themselves.
TEST(Pattern, ClassesOfCharacters) {
  TwinStates twins;
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes.push_back(static_cast<char>(c));
  for (int name = 0; name < 256; ++name) {
    if (name == 'b' || name == 'f' || ('0' <= name && name <= '9')) continue;
    const std::string escape = std::string("%") + static_cast<char>(name);
    twins.answer("string.gsub(" + literal(bytes) + ", " + literal(escape) + ", '')");
    twins.answer("string.gsub(" + literal(bytes) + ", " + literal("[" + escape + "]") + ", '')");
    twins.answer("string.gsub(" + literal(bytes) + ", " + literal("[^" + escape + "]") + ", '')");
    const std::string set = std::string("[") + static_cast<char>(name) + "-m]";
    twins.answer("string.gsub(" + literal(bytes) + ", " + literal(set) + ", '')");
  }
  EXPECT_EQ(twins.answer("('aB3_ \\n'):gsub('%w', '')"), "true \"_ \\\n\" integer 3");
}

TEST(Pattern, Sets) {
  check({{"('abc'):match('[b-c]+')", "true \"bc\""},
         {"('a]c'):match('[]]')", "true \"]\""},
         {"('a]c'):match('[^]]+')", "true \"a\""},
         {"('a-c'):match('[a-]+')", "true \"a-\""},
         {"('a-c'):match('[-c]+')", "true \"-c\""},
         {"('a^c'):match('[c^]+')", "true \"^c\""},
         {"('x%y'):match('[%%]')", "true \"%\""},
         {"('a-z%'):match('[%a-z]+')", "true \"a-z\""},
         {"('+&)'):match('[+-%]]')", "true nil"},
         {"('$ ]'):match('[ -%]]')", "true \"$\""},
         {"(']'):match('[+-%%]')", "true \"]\""},
         {"('[]'):match('[[]]')", "true \"[]\""},
         {"('\\0a'):match('[^a]') == '\\0'", "true true"},
         {"('ab\\0'):match('[^%Z]') == '\\0'", "true true"},
         {"('z'):match('[z-a]')", "true nil"},
         {"('\\200'):match('[\\127-\\255]') ~= nil", "true true"}});
}

TEST(Pattern, Repetitions) {
  check({{"('aaa'):match('a*')", "true \"aaa\""},
         {"('aaa'):match('a-')", "true \"\""},
         {"('aaab'):match('a-b')", "true \"aaab\""},
         {"('aaa'):match('a?a?a?a?')", "true \"aaa\""},
         {"('ab'):match('a?b')", "true \"ab\""},
         {"('b'):match('a?b')", "true \"b\""},
         {"('b'):match('a+b')", "true nil"},
         {"('aab'):match('a+ab')", "true \"aab\""},
         {"('a*'):match('a%*')", "true \"a*\""},
         {"('*a'):match('*a')", "true \"*a\""},
         {"('a+'):match('+')", "true \"+\""},
         {"('a**'):match('a**')", "true \"a*\""},
         {"('<<a>>'):match('<.->')", "true \"<<a>\""},
         {"('[[x]]'):match('%[%[(.-)%]%]')", "true \"x\""},
         {"('xay'):match('[a-c]?y')", "true \"ay\""},
         {"('a?'):match('a?%?')", "true \"a?\""}});
}

TEST(Pattern, Anchors) {
  check({{"('hello'):match('^h')", "true \"h\""},
         {"('hello'):match('^e')", "true nil"},
         {"('hello'):match('^l', 3)", "true \"l\""},
         {"('hello'):match('o$')", "true \"o\""},
         {"('he$o'):match('e$o')", "true \"e$o\""},
         {"('hello'):find('$')", "true integer 6 integer 5"},
         {"('a^b'):match('a^b')", "true \"a^b\""},
         {"('a$'):match('$$')", "true \"$\""},
         {"('^a'):match('^^a')", "true \"^a\""},
         {"(''):match('^$')", "true \"\""},
         {"('aaa'):gsub('^a', 'b')", "true \"baa\" integer 1"},
         {"('aaa'):gsub('^b', 'c')", "true \"aaa\" integer 0"},
         {"('aaa'):gsub('a$', 'b')", "true \"aab\" integer 1"},
         {"('abc'):gsub('^', 'x')", "true \"xabc\" integer 1"},
         {"('abc'):gsub('$', 'x')", "true \"abcx\" integer 1"},
         {"('abc'):gsub('$%w', 'x')", "true \"abc\" integer 0"},
         {"all(('^a^a'):gmatch('^a'))", "true true \"^a\"; true \"^a\"; true"}});
}

TEST(Pattern, Captures) {
  check({{"('key = value'):match('(%w+)%s*=%s*(%w+)')", "true \"key\" \"value\""},
         {"('abc'):match('((a)(b))c')", "true \"ab\" \"a\" \"b\""},
         {"('abc'):match('()b()')", "true integer 2 integer 3"},
         {"('abc'):match('(())')", "true \"\" integer 1"},
         {"('abc'):match('(a()b)')", "true \"ab\" integer 2"},
         {"('abc'):match('a(')", "false \"unfinished capture\""},
         {"('abc'):find('a(')", "false \"unfinished capture\""},
         {"('abc'):match('(a')", "false \"unfinished capture\""},
         {"('abc'):match('a)')", "false \"invalid pattern capture\""},
         {"('abc'):match('(a))')", "false \"invalid pattern capture\""},
         {"('xbc'):match('a)')", "true nil"},
         {"('abab'):match('(a)(b)%1%2')", "true \"a\" \"b\""},
         {"('abcab'):find('(ab)c%1')", "true integer 1 integer 5 \"ab\""},
         {"('\"it\\'s\"'):match('([\"\\'])(.-)%1')", "true \"\\\"\" \"it's\""},
         {"('aa'):match('()%1')", "true nil"},
         {"('aa'):match('(a%1)')", "false \"invalid capture index %1\""},
         {"('aa'):match('%1')", "false \"invalid capture index %1\""},
         {"('aa'):match('(a)%2')", "false \"invalid capture index %2\""},
         {"('aa'):match('(a)%0')", "false \"invalid capture index %0\""},
         {"('a'):match('()%0')", "false \"invalid capture index %0\""},
         {"('aXb'):match('(a)X()(b)')", "true \"a\" integer 3 \"b\""},
         {"('aab'):match('(a*)b')", "true \"aa\""},
         {"('b'):match('(a*)b')", "true \"\""},
         {"('aaa'):match('(a?)(a?)(a?)(a?)')", "true \"a\" \"a\" \"a\" \"\""}});
}

TEST(Pattern, BalancesAndFrontiers) {
  check({{"('f(a(b)c)d'):match('%b()')", "true \"(a(b)c)\""},
         {"('f(a(b'):match('%b()')", "true nil"},
         {"('xx'):match('%bxx')", "true \"xx\""},
         {"('xaxbx'):match('%bxx')", "true \"xax\""},
         {"('((a)'):match('%b()')", "true \"(a)\""},
         {"('(a)'):match('%b()()')", "true integer 4"},
         {"('a'):match('%b')", "false \"malformed pattern (missing arguments to '%b')\""},
         {"('a'):match('%bx')", "false \"malformed pattern (missing arguments to '%b')\""},
         {"('\\0a\\0'):match('%b\\0\\0') == '\\0a\\0'", "true true"},
         {"('THE (quick) fox'):find('%f[%a]%a+%f[%A]')", "true integer 1 integer 3"},
         {"('THE (quick) fox'):gsub('%f[%a]%a+', '%0!')", "true \"THE! (quick!) fox!\" integer 3"},
         {"('abc'):find('%f[%z]')", "true integer 4 integer 3"},
         {"('abc'):find('%f[^%w]')", "true integer 4 integer 3"},
         {"('abc'):find('%f[\\0]')", "true integer 4 integer 3"},
         {"('abc'):match('%f')", "false \"missing '[' after '%f' in pattern\""},
         {"('abc'):match('%fa')", "false \"missing '[' after '%f' in pattern\""},
         {"('abc'):match('%f[a')", "false \"malformed pattern (missing ']')\""},
         {"('aba'):find('%f[a]', 2)", "true integer 3 integer 2"}});
}

TEST(Pattern, MalformedPatternsAreRefusedWhenTheMatchReachesTheFault) {
  check({{"('a'):match('%')", "false \"malformed pattern (ends with '%')\""},
         {"('a'):match('a%')", "false \"malformed pattern (ends with '%')\""},
         {"('a'):match('b%')", "true nil"},
         {"('a'):match('[')", "false \"malformed pattern (missing ']')\""},
         {"('a'):match('[]')", "false \"malformed pattern (missing ']')\""},
         {"('a'):match('[^]')", "false \"malformed pattern (missing ']')\""},
         {"('a'):match('[^')", "false \"malformed pattern (missing ']')\""},
         {"('a'):match('[a%')", "false \"malformed pattern (missing ']')\""},
         {"('a'):match('[a%]')", "false \"malformed pattern (missing ']')\""},
         {"(''):match('[a')", "false \"malformed pattern (missing ']')\""},
         {"('a'):match('[a-')", "false \"malformed pattern (missing ']')\""},
         {"('a'):gsub('[', '')", "false \"malformed pattern (missing ']')\""},
         {"('a'):gmatch('[')()", "false \"malformed pattern (missing ']')\""},
         {"('a'):gsub('(', '')", "true \"a\" integer 2"},
         {"('a'):gsub('(', nothing)", "false \"unfinished capture\""},
         {"('a'):gsub('a', '%')", "false \"invalid use of '%' in replacement string\""},
         {"('a'):gsub('a', '%x')", "false \"invalid use of '%' in replacement string\""},
         {"('a'):gsub('b', '%x')", "true \"a\" integer 0"},
         {"('a'):gsub('a', '%2')", "false \"invalid capture index %2\""},
         {"('a'):gsub('(a)', '%2')", "false \"invalid capture index %2\""},
         {"('a'):gsub('a', '%1')", "true \"a\" integer 1"},
         {"('a'):gsub('a', function() return {} end)", "false \"invalid replacement value (a table)\""},
         {"('a'):gsub('a', {a = true})", "false \"invalid replacement value (a boolean)\""}});
}

TEST(Pattern, NestingAndCapturesAreBounded) {
  TwinStates twins;
  const std::string complex = "false \"test:1: pattern too complex\"";
  for (int count : {1, 31, 32, 33, 198, 199, 200, 201, 250}) {
    for (const char* unit : {"a?", "a*", "a-", "b?", "b*", "b-", "()", "(a)", "[a]?", "%f[%z]?", "a", "%%?"}) {
      const std::string pattern = literal(times(unit, count));
      twins.answer("string.find(('a'):rep(300), " + pattern + ")");
      twins.answer("string.match('', " + pattern + ")");
    }
  }
  EXPECT_EQ(twins.answer("string.find(('a'):rep(300), ('a?'):rep(199))"), "true integer 1 integer 199");
  EXPECT_EQ(twins.answer("string.find(('a'):rep(300), ('a?'):rep(200))"), complex);
  EXPECT_EQ(twins.answer("string.find(('a'):rep(300), ('b?'):rep(5000))"), "true integer 1 integer 0");
  EXPECT_EQ(twins.answer("string.match('', ('()'):rep(33))"), "false \"test:1: too many captures\"");
  EXPECT_EQ(twins.answer("select('#', string.match('', ('()'):rep(32)))"), "true integer 32");
}

TEST(Pattern, GmatchWalks) {
  check({{"all(('one two'):gmatch('%a+'))", "true true \"one\"; true \"two\"; true"},
         {"all(('a=1'):gmatch('(%w)=(%w)'))", "true true \"a\" \"1\"; true"},
         {"all(('ab'):gmatch('()'))", "true true integer 1; true integer 2; true integer 3; true"},
         {"all(('abc'):gmatch('b*'))", "true true \"\"; true \"b\"; true \"\"; true"},
         {"all(('hello'):gmatch('l', -1))", "true true"},
         {"all(('hello'):gmatch('l', 4))", "true true \"l\"; true"},
         {"all(('hello'):gmatch('', 6))", "true true \"\"; true"},
         {"all(('hello'):gmatch('', 7))", "true true"},
         {"all(string.gmatch(1212, 2))", "true true \"2\"; true \"2\"; true"},
         {"select('#', ('a'):gmatch('b')())", "true integer 0"}});
  TwinStates twins;
  // Calls the iterator after its end, after an error, and in another coroutine.
  twins.answer("(function() local i = ('ab'):gmatch('.') return i(), i(), say(i()), say(i()), say(i()) end)()");
  twins.answer("all(('abab'):gmatch('a('))");
  twins.answer("all(('abab'):gmatch('(a)%2'))");
  twins.answer("(function() local i = ('abc'):gmatch('.') i() return coroutine.wrap(i)(), i() end)()");
}

TEST(Pattern, GsubReplaces) {
  check({{"('hello world'):gsub('o', '0')", "true \"hell0 w0rld\" integer 2"},
         {"('hello'):gsub('', '-')", "true \"-h-e-l-l-o-\" integer 6"},
         {"('hello'):gsub('l*', 'x')", "true \"xhxexox\" integer 4"},
         {"('abc'):gsub('%w', '%0%0')", "true \"aabbcc\" integer 3"},
         {"('abc'):gsub('%w', '%%')", "true \"%%%\" integer 3"},
         {"('abc'):gsub('(a)(b)', '%2%1')", "true \"bac\" integer 1"},
         {"('abc'):gsub('()', '%1')", "true \"1a2b3c4\" integer 4"},
         {"('abc'):gsub('b', 7)", "true \"a7c\" integer 1"},
         {"('abc'):gsub('b', 1.5)", "true \"a1.5c\" integer 1"},
         {"('abc'):gsub('%w', 'x', 2)", "true \"xxc\" integer 2"},
         {"('abc'):gsub('%w', 'x', 0)", "true \"abc\" integer 0"},
         {"('abc'):gsub('%w', 'x', -1)", "true \"abc\" integer 0"},
         {"('abc'):gsub('%w', 'x', '2')", "true \"xxc\" integer 2"},
         {"('$name is $age'):gsub('%$(%w+)', {name = 'Lua', age = 30})", "true \"Lua is 30\" integer 2"},
         {"('abc'):gsub('%w', {a = false, b = 'B'})", "true \"aBc\" integer 3"},
         {"('abc'):gsub('()', {[2] = '!'})", "true \"a!bc\" integer 4"},
         {"('abc'):gsub('%w', setmetatable({}, {__index = function(_, k) return k .. k end}))",
          "true \"aabbcc\" integer 3"},
         {"('abc'):gsub('(%w)()', saying)",
          "true \"<\\\"a\\\" integer 2><\\\"b\\\" integer 3><\\\"c\\\" integer 4>\" integer 3"},
         {"('abc'):gsub('b', nothing)", "true \"abc\" integer 1"},
         {"('abc'):gsub('%w', function(c) return c == 'b' and 'X' end)", "true \"aXc\" integer 3"},
         {"('abc'):gsub('%w', function(c) return 1 end)", "true \"111\" integer 3"},
         {"('abc'):gsub('%w', function(c) error('no ' .. c, 0) end)", "false \"no a\""},
         {"('a b'):gsub('%w', function(c) return (c:gsub('.', '[%0]')) end)", "true \"[a] [b]\" integer 2"},
         {"('a\\0b'):gsub('\\0', '%%') == 'a%b'", "true true"},
         {"(('x'):rep(5000):gsub('x', ('y'):rep(10)))==('y'):rep(50000)", "true true"}});
  TwinStates twins;
  twins.answer("('abc'):gsub('%w', coroutine.yield)");
  twins.answer("coroutine.wrap(function() return ('abc'):gsub('%w', coroutine.yield) end)()");
  twins.answer("(function() local function f() return (('a'):gsub('a', f)) end return f() end)()");
}

TEST(Pattern, Arguments) {
  TwinStates twins;
  for (const char* name : {"find", "match", "gmatch", "gsub"}) {
    for (const char* arguments :
         {"()", "('a')", "(nil, 'a')", "({}, 'a')", "('a', {})", "('a', true)", "('a', 'a', 'x')", "('a', 'a', 1.5)",
          "('a', 'a', {})", "('a', 'a', '1.5')", "('a', 'a', nil)", "('a', 'a', 'a', 'x')", "('a', 'a', true, 1)",
          "('a', 'a', 'a', 1.5)", "('a', 'a', nil, 1.5)", "('a', 'a', print, {})", "('a', 'a', io.stdout)"}) {
      const std::string call = std::string("string.") + name + arguments;
      EXPECT_FALSE(twins.answer(call).empty());
      twins.answer(std::string("('x'):") + name + arguments);
      twins.answer(std::string("pcall(string.") + name + ", " + (arguments + 1));
    }
  }
  EXPECT_EQ(twins.answer("string.find()"),
            "false \"test:1: bad argument #1 to 'find' (string expected, got no value)\"");
  EXPECT_EQ(twins.answer("('a'):gsub('a')"),
            "false \"test:1: bad argument #2 to 'gsub' (string/function/table expected, got no value)\"");
}

}  // namespace

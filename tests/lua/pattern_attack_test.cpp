// Patterns with a running time of years end at the script's deadline, and ordinary patterns do not pay for the check.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "end_at_check.h"
#include "plugins/lua/stdlib/pattern_match.h"
#include "testkit/pace.h"
#include "twin_states.h"

namespace {

using namespace jobq::lua;

// Each pattern runs for minutes to years without an end from outside.
const std::vector<const char*> kAttacks = {
    "('a'):rep(60):find(('a?'):rep(60) .. ('a'):rep(60) .. 'b')",
    "('a'):rep(1e6):find(('a*'):rep(30) .. 'b')",
    "('a'):rep(1e6):match('.-.-.-.-.-b')",
    "('a'):rep(1e7):find('a*b')",
    "('a'):rep(1e7):find('a-b')",
    "('a'):rep(1e7):match('[a-z]*%d')",
    "('a'):rep(1e7):match('%a*%d')",
    "('a'):rep(1e7):match('(.*)b')",
    "('('):rep(1e7):find('%b()')",
    "('('):rep(1e7):gsub('%b()', '')",
    "('('):rep(1e7):gmatch('%b()')()",
    "('a'):rep(1e7):find(('a'):rep(2e6) .. 'b' .. ('a'):rep(2e6), 1, true)",
    "('a'):rep(1e7):find(('a'):rep(2e6) .. 'b' .. ('a'):rep(2e6))",
    "('a'):rep(1e7):match('(a*).-%1b')",
    "('a'):rep(1e7):gsub('a*b', '')",
    "('a'):rep(1e7):match('[' .. ('b'):rep(1e6) .. ']')",
    "('a'):rep(1e7):match('%f[' .. ('b'):rep(1e6) .. ']')",
    "('a'):rep(1e6):gsub('', ('%1'):rep(1e6))",
    "('a'):rep(1e6):gsub('()', setmetatable({}, {__index = {}})) and ('a'):rep(1e7):find('a*b')",
};

TEST(PatternAttack, EndsWithItsScript) {
  constexpr int kChecks = 50;
  for (const char* attack : kAttacks) {
    TestState state(TestState::Patterns::kOwn);
    test::EndAtCheck end(kChecks);
    state.limiter().arm(end);
    const std::string said = state.answer(attack);
    EXPECT_NE(said.find("time is over"), std::string::npos) << attack << ": " << said;
    EXPECT_EQ(end.checks(), kChecks) << attack;
    EXPECT_EQ(state.limiter().reason(), "time is over");
  }
}

// No later action of the script buys a further step.
TEST(PatternAttack, CannotBeSwallowed) {
  TestState state(TestState::Patterns::kOwn);
  test::EndAtCheck end(5);
  state.limiter().arm(end);
  const std::string said = state.answer(
      "(function() while true do pcall(string.find, ('a'):rep(1e7), 'a*b') coroutine.wrap(pcall)(string.find, "
      "('a'):rep(1e7), 'a*b') end end)()");
  EXPECT_NE(said.find("time is over"), std::string::npos) << said;
  EXPECT_EQ(end.checks(), 5);
}

// A host that records the charged steps and ends the match at a limit.
class CountingHost final : public MatchHost {
 public:
  struct Refused {
    std::string message;
  };
  void spend(std::uint64_t steps) override {
    total += steps;
    most = std::max(most, steps);
  }
  [[noreturn]] void refuse(const char* message) override { throw Refused{message}; }

  std::uint64_t total = 0;
  std::uint64_t most = 0;
};

struct Cost {
  std::string subject;
  std::string pattern;
  std::uint64_t least;  // unavoidable comparisons of characters
};

// The check of the deadline depends on two facts: all work is charged, and in small pieces.
TEST(PatternAttack, EveryStepIsCharged) {
  const std::string many(3000, 'a');
  const std::vector<Cost> costs = {
      {many, "a*b", 3000 * 3000 / 2},
      {many, "a-b", 3000 * 3000 / 2},
      {many, "[ab]*c", 3000 * 3000 / 2},
      {many, "%a*c", 3000 * 3000 / 2},
      {many, ".*c", 3000 * 3000 / 2},
      {many, "b", 3000},
      {std::string(3000, '('), "%b()", 3000 * 3000 / 2},
      {many, "[" + std::string(3000, 'b') + "]", 3000 * 3000},
      {many, "%f[" + std::string(3000, 'b') + "]", 3000 * 3000},
      {"a", "[" + std::string(100'000, 'b') + "]", 190'000},
      {many, "(a*)%1b", 3000 * 3000 / 2},
      {std::string(24, 'a'), "a?a?a?a?a?a?a?a?a?a?a?a?aaaaaaaaaaaab", 4096},
  };
  for (const Cost& cost : costs) {
    CountingHost host;
    Matcher matcher(host, cost.subject, cost.pattern);
    for (const char& at : cost.subject) EXPECT_EQ(matcher.matchAt(&at), nullptr) << cost.pattern.substr(0, 20);
    matcher.meter().flush();
    EXPECT_GE(host.total, cost.least) << cost.pattern.substr(0, 20);
    EXPECT_LE(host.most, 20'000U) << cost.pattern.substr(0, 20);
  }
}

// A single run without a mismatch and without backtracking.
TEST(PatternAttack, ALongRunIsChargedInPieces) {
  const std::string subject(1'000'000, 'a');
  for (const char* pattern : {"a*", "a+", "%a*", "[a-c]*", "[^b]+", ".*", "a-$"}) {
    CountingHost host;
    Matcher matcher(host, subject, pattern);
    EXPECT_EQ(matcher.matchAt(subject.data()), subject.data() + subject.size()) << pattern;
    EXPECT_GE(host.total, 990'000U) << pattern;
    EXPECT_LE(host.most, 20'000U) << pattern;
  }
}

TEST(PatternAttack, EveryByteOfAPlainSearchIsCharged) {
  const std::string haystack(20'000, 'a');
  const std::string needle = std::string(5'000, 'a') + "b" + std::string(5'000, 'a');
  CountingHost host;
  StepMeter meter(host);
  EXPECT_EQ(findText(meter, haystack, needle), nullptr);
  meter.flush();
  EXPECT_GE(host.total, 10'000U * 5'000U - 10'000U);
  EXPECT_LE(host.most, 20'000U);
}

TEST(PatternAttack, MatchesInSmallSteps) {
  CountingHost host;
  const std::string subject = "key = value";
  Matcher matcher(host, subject, "(%w+)%s*=%s*(%w+)");
  EXPECT_EQ(matcher.matchAt(subject.data()), subject.data() + subject.size());
  ASSERT_EQ(matcher.captures(), 2);
  EXPECT_EQ(std::string(matcher.capture(1).begin, 5), "value");
  matcher.meter().flush();
  EXPECT_GE(host.total, subject.size());
  EXPECT_LE(host.total, 100U);
  EXPECT_THROW(Matcher(host, subject, "[k").matchAt(subject.data()), CountingHost::Refused);
}

// Memory belongs to Lua: a state with a limit ends a gsub that grows without end.
TEST(PatternAttack, MemoryIsTheStates) {
  struct Limit {
    std::size_t left = 32U << 20;
    static void* allocate(void* self, void* old, std::size_t had, std::size_t wanted) {
      auto& own = *static_cast<Limit*>(self);
      if (old == nullptr) had = 0;
      if (wanted > had && wanted - had > own.left) return nullptr;
      own.left = own.left + had - wanted;
      if (wanted != 0) return std::realloc(old, wanted);
      std::free(old);
      return nullptr;
    }
  } limit;
  TestState state(TestState::Patterns::kOwn);
  lua_setallocf(state.lua(), Limit::allocate, &limit);
  EXPECT_EQ(state.answer("(('a'):rep(1e6):gsub('a', ('b'):rep(1e6)))"), "false \"not enough memory\"");
  EXPECT_EQ(state.answer("(('a'):rep(1e6):gsub('a', 'b')):sub(1, 3)"), "true \"bbb\"")
      << "the state still works after the error";
}

#if JOBQ_SANITIZED || !defined(__OPTIMIZE__)
TEST(PatternSpeed, IsTheStockOnes) { GTEST_SKIP() << "says nothing in a build for a sanitizer or without optimising"; }
#else
double seconds(TestState& state, const std::string& loop) {
  const std::chrono::nanoseconds begin = jobq::testkit::threadProcessorTime();
  EXPECT_EQ(state.answer(loop).rfind("true", 0), 0U) << loop;
  return std::chrono::duration<double>(jobq::testkit::threadProcessorTime() - begin).count();
}

TEST(PatternSpeed, IsTheStockOnes) {
  TwinStates twins;
  const std::string text = "local t = ('The quick brown fox = jumped, over 12 lazy dogs; key=value '):rep(20)";
  for (const char* work :
       {"t:find('dogs; nothing')", "t:find('nothing', 1, true)", "t:find('(%w+)=(%w+) $')", "t:match('^.*(%d+)')",
        "t:gsub('%w+', '<%0>')", "t:gsub('%s+', ' ')", "t:gsub('%w+', {fox = 'cat'})",
        "t:gsub('[aeiou]', string.upper)", "('key = value'):match('^(%w+)%s*=%s*(%w+)$')", "('a,b,c'):find(',')",
        "(function() for w in t:gmatch('[%a_][%w_]*') do end end)()"}) {
    const std::string loop = "(function() " + text + " for i = 1, 200 do local x = " + work + " end end)()";
    double own = 1e9;
    double stock = 1e9;
    for (int round = 0; round < 7; ++round) {
      own = std::min(own, seconds(twins.own(), loop));
      stock = std::min(stock, seconds(twins.stock(), loop));
    }
    std::printf("%5.2f x the stock one's time: %s\n", own / stock, work);
    EXPECT_LE(own / stock, 2.0) << work;
  }
}
#endif

}  // namespace

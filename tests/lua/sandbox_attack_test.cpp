// Harmful scripts. Each script runs as a handler and as a filter, on a thread with the small stack of an HTTP thread.
// The script ends, names the reason, never delays the check of the deadline for long, and leaves the worker unchanged.
// Times are processor times of the thread, and a loop of Lua without the sandbox is their twin: neither other work on
// the machine nor a slow processor changes a verdict.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <lua.hpp>
#include <memory>

#include "attacks.h"
#include "lua_fixture.h"

namespace jobq::lua::test {
namespace {

using testkit::threadProcessorTime;
using Seconds = std::chrono::duration<double>;

#if JOBQ_SANITIZED_THREADS
constexpr std::size_t kSmallStack = std::size_t{8} << 20;  // ThreadSanitizer takes most of a megabyte for itself
#else
constexpr std::size_t kSmallStack = std::size_t{1} << 20;
#endif
// Returns the processor time in seconds of an empty loop with ten million rounds in Lua without the sandbox.
double timeOfTwin() {
  const std::unique_ptr<lua_State, decltype(&lua_close)> stock(luaL_newstate(), lua_close);
  const std::chrono::nanoseconds begun = threadProcessorTime();
  EXPECT_EQ(luaL_dostring(stock.get(), "for i = 1, 10000000 do end"), LUA_OK);
  return Seconds(threadProcessorTime() - begun).count();
}

// Bound of a gap, in times of the twin; measured: below 20 for nearly all scripts. A sanitizer slows the sandbox only.
constexpr double kLongestGap = JOBQ_SANITIZED ? 400 : 200;

// A clock advanced by readings: the deadline is 20,000 readings away, or 150 ms of processor time
// for a script with few readings. Attacks that end by themselves have more. At the deadline the clock stops the job, as
// the server does. Used only by the thread of the scripts.
class ImpatientClock final : public Clock {
 public:
  static constexpr Instant kDeadline = fromEpochMillis(1'000'000);

  // Reading the processor's clock is a system call and costs more than most readings here. Real time is never less and
  // replaces the processor's clock up to a millisecond. Both are plain numbers of nanoseconds: tests are compiled
  // without the optimiser, and the operators of std::chrono took a third of the time of an attack with many readings.
  Instant now() const override {
    if (realTime() - asked_ >= 1'000'000) ask();
    if (last_ - begun_ < (isShort_ ? kShort : kLong) && (!isShort_ || ++looks_ < 20'000)) return kStart;
    if (job_ != nullptr) job_->stop();
    return kDeadline;
  }
  void waitUntil(Mutex&, Condition&, Instant) override {}

  void begin(FakeJobContext& job, bool isShort) {
    job_ = &job;
    isShort_ = isShort;
    looks_ = 0;
    begun_ = last_ = threadProcessorTime().count();
    asked_ = realTime();
  }
  /// Called after the script has ended on this thread. Returns the longest time in seconds between two readings so far.
  double end() const {
    ask();
    return gap_;
  }
  double gap() const { return gap_; }

 private:
  static constexpr Instant kStart = fromEpochMillis(0);
  static constexpr std::int64_t kShort = 150'000'000;
  static constexpr std::int64_t kLong = 20'000'000'000;

  static std::int64_t realTime() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
  }

  void ask() const {
    const std::int64_t here = threadProcessorTime().count();
    gap_ = std::max(gap_, static_cast<double>(here - last_) / 1e9);
    last_ = here;
    asked_ = realTime();
  }

  FakeJobContext* job_ = nullptr;
  bool isShort_ = false;
  mutable int looks_ = 0;
  mutable double gap_ = 0;
  std::int64_t begun_ = 0;
  mutable std::int64_t last_ = 0;
  mutable std::int64_t asked_ = 0;
};

// Returns a text that serves as a handler and as a filter.
std::string scriptOf(const Attack& attack) {
  return std::string("local function attack()\n") + attack.body + R"(
end
return function(input, job)
  local isFilter = job == nil
  if isFilter then input = input.input end
  if input.attack then return attack() and nil end
  if isFilter then return nil end
  return 'served'
end)";
}

bool says(const std::string& text, End end, bool isFilter) {
  const auto has = [&text](std::string_view part) { return text.find(part) != std::string::npos; };
  switch (end) {
    case End::time: return has(isFilter ? "ms of processor time (lua.filterTime)" : kOverTime);
    case End::memory: return has("not enough memory");
    case End::stack: return has("stack overflow");
    case End::any: return true;
  }
  return false;
}

class SandboxAttack : public LuaTest, public testing::WithParamInterface<Attack> {
 protected:
  static std::size_t residentBytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("VmRSS:", 0) == 0) return std::stoul(line.substr(6)) * 1024;
    }
    return 0;
  }

  void attackAsHandler() {
    const auto factory = handlers();
    const auto handler = factory->make(envFor("attack"));
    for (int round = 0; round < 3; ++round) {
      FakeJobContext attacked({.deadline = ImpatientClock::kDeadline});
      impatient.begin(attacked, GetParam().end == End::time);
      const std::string end = outcome(*handler, R"({"attack":true})", attacked);
      EXPECT_TRUE(says(end, GetParam().end, false)) << end.substr(0, 500);
      EXPECT_LT(impatient.end(), longestGap) << "the gap between two reads of the clock is too long, in seconds";
      FakeJobContext next({.deadline = ImpatientClock::kDeadline});
      impatient.begin(next, false);
      EXPECT_EQ(outcome(*handler, "{}", next), "\"served\"");
    }
  }

  void attackAsFilter() {
    const auto factory = filters(with({{"filterTime", GetParam().end == End::time ? "50" : "1000"}}));
    const auto filter = factory->make("attack");
    for (int round = 0; round < 2; ++round) {
      const std::chrono::nanoseconds begun = threadProcessorTime();
      const Verdict end = review(*filter, R"({"attack":true})");
      EXPECT_LT(Seconds(threadProcessorTime() - begun).count(), longestGap) << "seconds of a filter";
      // A slow machine may reach the filter's time first.
      const bool late = GetParam().end != End::any && says(end.text, End::time, true);
      EXPECT_TRUE(late || says(end.text, GetParam().end, true)) << end.text.substr(0, 500);
      EXPECT_EQ(review(*filter, "{}").text, "accepted");
    }
  }

  const double longestGap = kLongestGap * timeOfTwin();  // in seconds
  ImpatientClock impatient;
};

TEST_P(SandboxAttack, ComesToItsEndAndLeavesNothingBehind) {
  // The settings of core/main.cpp: free memory goes back to the system.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
  used = &impatient;
  scripts.write("attack", scriptOf(GetParam()));
  const std::size_t before = residentBytes();
  const std::size_t asHandler = onStack(kSmallStack, [this] { attackAsHandler(); });
  const std::size_t asFilter = onStack(kSmallStack, [this] { attackAsFilter(); });
  const std::size_t deepest = std::max(asHandler, asFilter);
  RecordProperty("stack", std::to_string(deepest));
  RecordProperty("gap", std::to_string(impatient.gap()));
  std::cout << "stack " << deepest / 1024 << " KB, longest gap " << static_cast<int>(impatient.gap() * 1000) << " ms\n";
  if (!JOBQ_SANITIZED) {
    EXPECT_LT(deepest, kSmallStack / 2);
    EXPECT_LT(residentBytes(), before + (std::size_t{24} << 20));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SandboxAttack, testing::ValuesIn(kAttacks),
                         [](const auto& attack) { return std::string(attack.param.name); });

}  // namespace
}  // namespace jobq::lua::test

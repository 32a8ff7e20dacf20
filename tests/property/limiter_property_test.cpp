// Random calls against each limiter and the simplest correct model of the limiter: every verdict must equal the verdict
// of the model. A failing sequence is shortened and printed with its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <random>
#include <sstream>

#include "jobq/rate_limiter.h"
#include "seeds.h"
#include "shrink.h"
#include "testkit/loaded_plugin.h"

namespace jobq::model {
namespace {

constexpr std::size_t kOperations = 60;
constexpr std::size_t kKeys = 3;

/// A call. Numbers are small, so few calls fill a window, and refusals are as common as permissions.
struct Operation {
  bool leave;  ///< no operation while no call is inside
  std::size_t key;
  RateLimit limit;
  Millis passed;  ///< since the call before
  Millis late;    ///< distance of the caller's earlier instant
};

std::vector<Operation> randomOperations(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  std::array<Millis, kKeys> windows;
  for (Millis& window : windows) window = Millis(1 + below(below(2) == 0 ? 5 : 40));
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < kOperations; ++i) {
    Operation next{below(3) == 0, below(kKeys), {}, Millis(0), Millis(0)};
    next.limit = {below(7), windows[next.key], below(3) == 0 ? 0 : 1 + below(5)};
    if (below(2) == 0) next.passed = Millis(below(12));
    if (below(10) == 0) next.passed = windows[next.key];
    if (below(20) == 0) next.passed = Millis(50'000 + below(30'000));  // keys are forgotten
    if (below(4) == 0) next.late = Millis(below(10));
    operations.push_back(next);
  }
  return operations;
}

std::string text(const Operation& operation) {
  std::ostringstream line;
  line << '+' << operation.passed.count() << " ms: key " << operation.key;
  if (operation.leave) {
    line << " leave";
  } else {
    line << " enter, " << operation.limit.requests << " within " << operation.limit.window.count() << " ms, "
         << operation.limit.concurrent << " at once, " << operation.late.count() << " ms late";
  }
  return line.str();
}

/// The used rate of one key. `now` never goes back.
class RateModel {
 public:
  virtual ~RateModel() = default;
  /// Returns true if a call would be allowed after `later` without other calls until then.
  virtual bool room(const RateLimit& limit, Instant now, Millis later) const = 0;
  virtual void count(Instant now) = 0;
  virtual std::uint32_t remaining(const RateLimit& limit, Instant now) const = 0;
  /// Called after each call with a rate limit, after any verdict.
  virtual void countDecided(const RateLimit&, Instant) {}
};

/// All allowed instants.
class WindowModel final : public RateModel {
 public:
  bool room(const RateLimit& limit, Instant now, Millis later) const override {
    return within(limit, now + later) < limit.requests;
  }
  void count(Instant now) override { allowed_.push_back(now); }
  std::uint32_t remaining(const RateLimit& limit, Instant now) const override {
    return limit.requests - within(limit, now);
  }

 private:
  std::uint32_t within(const RateLimit& limit, Instant now) const {
    return static_cast<std::uint32_t>(
        std::count_if(allowed_.begin(), allowed_.end(), [&](Instant at) { return at > now - limit.window; }));
  }

  std::deque<Instant> allowed_;
};

/// An exact number of tokens.
class Fraction {
 public:
  explicit Fraction(std::int64_t above = 0, std::int64_t below = 1) : above_(above), below_(below) {
    const std::int64_t common = std::max<std::int64_t>(std::gcd(above, below), 1);
    above_ /= common;
    below_ /= common;
  }
  Fraction operator+(const Fraction& o) const {
    return Fraction(above_ * o.below_ + o.above_ * below_, below_ * o.below_);
  }
  Fraction operator-(const Fraction& o) const { return *this + Fraction(-o.above_, o.below_); }
  bool operator<(const Fraction& o) const { return above_ * o.below_ < o.above_ * below_; }
  std::int64_t whole() const { return above_ / below_; }

 private:
  std::int64_t above_;
  std::int64_t below_;
};

/// Tokens taken and not yet refilled. Between two calls the limit of the earlier call is in force.
class BucketModel final : public RateModel {
 public:
  bool room(const RateLimit& limit, Instant now, Millis later) const override {
    const Fraction level = Fraction(limit.requests) - refilled(refilled(taken_, last_, now - at_), limit, later);
    return !(level < Fraction(1));
  }
  void count(Instant) override { ++counted_; }
  std::uint32_t remaining(const RateLimit& limit, Instant now) const override {
    const Fraction taken = refilled(taken_, last_, now - at_) + Fraction(counted_);
    return static_cast<std::uint32_t>((Fraction(limit.requests) - taken).whole());
  }
  void countDecided(const RateLimit& limit, Instant now) override {
    taken_ = refilled(taken_, last_, now - at_) + Fraction(counted_);
    counted_ = 0;
    at_ = now;
    last_ = limit;
  }

 private:
  static Fraction refilled(const Fraction& taken, const RateLimit& limit, Millis elapsed) {
    const Fraction left = taken - Fraction(elapsed.count() * limit.requests, limit.window.count());
    return left < Fraction(0) ? Fraction(0) : left;
  }

  Fraction taken_;
  std::int64_t counted_ = 0;  // counted by the call before countDecided()
  Instant at_;
  RateLimit last_;
};

template <class Rate>
class LimiterModel {
 public:
  RateVerdict enter(std::size_t key, const RateLimit& limit, Instant now) {
    Key& at = keys_[key];
    at.newest = std::max(at.newest, now);
    const RateVerdict verdict = judge(at, limit);
    if (verdict.allowed) ++at.inside;
    if (limit.requests > 0) at.rate.countDecided(limit, at.newest);
    return verdict;
  }
  bool leave(std::size_t key) { return keys_[key].inside > 0 && keys_[key].inside-- > 0; }

 private:
  struct Key {
    Rate rate;
    Instant newest;
    std::uint32_t inside = 0;
  };

  static RateVerdict judge(Key& key, const RateLimit& limit) {
    if (limit.requests > 0) {
      Millis wait(0);
      while (!key.rate.room(limit, key.newest, wait)) ++wait;
      if (wait > Millis(0)) return {false, wait, 0};
    }
    if (limit.concurrent > 0 && key.inside >= limit.concurrent) return {false, Millis(1'000), 0};
    if (limit.requests == 0) return {true, Millis(0), 0};
    key.rate.count(key.newest);
    return {true, Millis(0), key.rate.remaining(limit, key.newest)};
  }

  std::array<Key, kKeys> keys_;
};

std::string text(const RateVerdict& verdict) {
  return (verdict.allowed ? "allowed, " : "refused, ") + std::to_string(verdict.retryAfter.count()) + " ms, " +
         std::to_string(verdict.remaining) + " remaining";
}

class LimiterProperty : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<RateLimiter> open() {
    static testkit::SilentLog log;
    static testkit::ManualClock clock;
    static const testkit::MapConfig config;
    return testkit::loadPlugin<RateLimiter>(JOBQ_PLUGIN_DIR "/libjobq_limiter_" + GetParam() + ".so", GetParam(),
                                            PluginEnv{config, clock, log, {}, false});
  }

  /// Returns the first difference; empty if every answer was right.
  std::string play(const std::vector<Operation>& operations) {
    return GetParam() == "window" ? playAgainst<WindowModel>(operations) : playAgainst<BucketModel>(operations);
  }

  template <class Rate>
  std::string playAgainst(const std::vector<Operation>& operations) {
    const auto limiter = open();
    LimiterModel<Rate> model;
    Instant now = fromEpochMillis(1'767'225'600'000);
    for (const Operation& operation : operations) {
      now += operation.passed;
      const std::string key = "ep" + std::to_string(operation.key) + "/run";
      if (operation.leave) {
        if (model.leave(operation.key)) limiter->leave(key);
        continue;
      }
      const std::string expected = text(model.enter(operation.key, operation.limit, now - operation.late));
      const std::string found = text(limiter->enter(key, operation.limit, now - operation.late));
      if (found != expected) return found + "; the model: " + expected;
      ++verdicts_[found.front()];
    }
    return {};
  }

  std::map<char, std::uint64_t> verdicts_;  // by their first letter
};

TEST_P(LimiterProperty, EveryVerdictIsTheModels) {
  const Seeds seeds(10'000);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const auto operations = randomOperations(seed);
    if (play(operations).empty()) continue;
    const auto fewest = shrink<Operation>(operations, [this](const auto& fewer) { return !play(fewer).empty(); });
    std::string report;
    for (const Operation& operation : fewest) report += "\n  " + text(operation);
    FAIL() << "seed " << seed << ": " << play(fewest) << "\nafter" << report;
  }
  std::cout << verdicts_['a'] << " allowed, " << verdicts_['r'] << " refused" << std::endl;
  EXPECT_GE(verdicts_['a'], seeds.count);
  EXPECT_GE(verdicts_['r'], seeds.count);
}

INSTANTIATE_TEST_SUITE_P(Each, LimiterProperty, testing::Values("window", "bucket"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace jobq::model

// A window that slides with each millisecond: at no time were more than `requests` allowed within the last `window`,
// where a request made exactly `window` ago is out. Exact, because instants are whole milliseconds and every one that
// counts is kept, those of one millisecond together.
#include <algorithm>
#include <deque>

#include "jobq/abi.h"
#include "jobq/keyed_rate_limiter.h"

namespace {

using jobq::Instant;
using jobq::Millis;

/// At most one run a request, and one a millisecond of the window. Should the window of a key change all the same, what
/// a shorter one let go of is not brought back.
class SlidingWindow {
 public:
  Millis wait(const jobq::RateLimit& limit, Instant now) {
    now_ = now;
    window_ = limit.window;
    requests_ = limit.requests;
    while (!runs_.empty() && out(runs_.front(), now)) {
      counted_ -= runs_.front().count;
      runs_.pop_front();
    }
    return counted_ < requests_ ? Millis(0) : leaveOf(counted_ - requests_ + 1) - now;
  }

  void count() {
    if (runs_.empty() || runs_.back().at != now_) runs_.push_back({now_, 0});
    ++runs_.back().count;
    ++counted_;
  }

  void uncount(Instant at) {
    const auto run = std::find_if(runs_.begin(), runs_.end(), [at](const Run& each) { return each.at >= at; });
    if (run == runs_.end()) return;
    --counted_;
    if (--run->count == 0) runs_.erase(run);
  }

  std::uint32_t remaining() const { return requests_ - counted_; }
  bool idle(Instant now) const { return runs_.empty() || out(runs_.back(), now); }

 private:
  struct Run {
    Instant at;
    std::uint32_t count;
  };

  bool out(const Run& run, Instant now) const { return now - run.at >= window_; }

  // When the oldest `many` are out. More than one only after the limit has shrunk.
  Instant leaveOf(std::uint32_t many) const {
    auto run = runs_.begin();
    while (run->count < many) many -= (run++)->count;
    return run->at + window_;
  }

  std::deque<Run> runs_;  // oldest first
  std::uint32_t counted_ = 0;
  Instant now_;
  Millis window_{1};
  std::uint32_t requests_ = 0;
};

class Window final : public jobq::KeyedRateLimiter<SlidingWindow> {
 public:
  explicit Window(const jobq::PluginEnv&) {}
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::RateLimiter, Window>("window", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)

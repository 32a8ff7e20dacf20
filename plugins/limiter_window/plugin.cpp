// Plugin `limiter_window`: a window that slides with each millisecond. At no time were more than `requests` requests
// allowed within the last `window`; a request made exactly `window` ago no longer counts. The count is exact, because
// instants are whole milliseconds and every counting request is kept, the requests of a millisecond together.
#include <deque>

#include "jobq/abi.h"
#include "jobq/keyed_rate_limiter.h"

namespace {

using jobq::Instant;
using jobq::Millis;

/// The counting requests of a key. A key has at most a run for each request and for each millisecond of the window.
/// After a change of a key's window to a longer one, requests dropped under the shorter window stay dropped.
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

  std::uint32_t remaining() const { return requests_ - counted_; }
  bool idle(Instant now) const { return runs_.empty() || out(runs_.back(), now); }

 private:
  struct Run {
    Instant at;
    std::uint32_t count;
  };

  bool out(const Run& run, Instant now) const { return now - run.at >= window_; }

  // Returns the moment when the oldest `many` requests no longer count. `many` is above 1 only after the limit has
  // shrunk.
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

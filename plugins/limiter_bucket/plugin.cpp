// A bucket of `requests` tokens that is refilled evenly, `requests` in each `window`; a request takes one. A few bytes
// a key, and no caller waits for a whole window; in return the first window after a pause may see up to twice
// `requests`.
//
// Whole numbers only: a token is cut into as many parts as the window has milliseconds, so that each millisecond brings
// `requests` parts. What is kept is what was taken and not yet refilled: when the limit changes, it stays.
#include <algorithm>
#include <cstdint>

#include "jobq/abi.h"
#include "jobq/keyed_rate_limiter.h"

namespace {

using jobq::Instant;
using jobq::Millis;

constexpr std::int64_t dividedUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// From one call to the next, the limit of the first of them is in force. The greatest number, 2^32 requests in 7 days,
/// is below 2^62.
class Bucket {
 public:
  Millis wait(const jobq::RateLimit& limit, Instant now) {
    taken_ = leftTaken(now);
    at_ = now;
    requests_ = limit.requests;
    if (limit.window.count() != window_) cutInto(limit.window.count());
    const std::int64_t missing = taken_ + window_ - requests_ * window_;
    return Millis(missing > 0 ? dividedUp(missing, requests_) : 0);
  }

  void count() { taken_ += window_; }
  void uncount(Instant) { taken_ = std::max<std::int64_t>(taken_ - window_, 0); }
  std::uint32_t remaining() const { return static_cast<std::uint32_t>((requests_ * window_ - taken_) / window_); }
  bool idle(Instant now) const { return leftTaken(now) == 0; }

 private:
  // Looks at the time first: a pause of years times `requests` would be too great a number.
  std::int64_t leftTaken(Instant now) const {
    const std::int64_t elapsed = (now - at_).count();
    return elapsed >= dividedUp(taken_, requests_) ? 0 : taken_ - elapsed * requests_;
  }

  // The same tokens in other parts; a part of a part is taken.
  void cutInto(std::int64_t window) {
    taken_ = taken_ / window_ * window + dividedUp(taken_ % window_ * window, window_);
    window_ = window;
  }

  std::int64_t taken_ = 0;  // in parts: 1 / window_ of a token
  Instant at_;              // when it was that much
  std::int64_t requests_ = 1;
  std::int64_t window_ = 1;
};

class TokenBucket final : public jobq::KeyedRateLimiter<Bucket> {
 public:
  explicit TokenBucket(const jobq::PluginEnv&) {}
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::RateLimiter, TokenBucket>("bucket", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)

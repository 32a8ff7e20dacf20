// Plugin `limiter_bucket`: a bucket of `requests` tokens, refilled evenly with `requests` tokens in each `window`. A
// request takes a token. A key costs a few bytes, and no caller waits for a whole window. In return the first window
// after a pause may see up to twice `requests`.
//
// All numbers are whole: a token is cut into as many parts as the window has milliseconds, so each millisecond brings
// `requests` parts. The bucket stores the taken and not yet refilled parts, which stay when the limit changes.
#include "jobq/abi.h"
#include "jobq/keyed_rate_limiter.h"

namespace {

using jobq::Instant;
using jobq::Millis;

constexpr std::int64_t dividedUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The tokens taken by a key. The limit of a call of wait() stays in force until the next call. The greatest number,
/// from 2^32 requests in 7 days, is below 2^62.
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
  std::uint32_t remaining() const { return static_cast<std::uint32_t>((requests_ * window_ - taken_) / window_); }
  bool idle(Instant now) const { return leftTaken(now) == 0; }

 private:
  // Compares the time first: a pause of years times `requests` would overflow.
  std::int64_t leftTaken(Instant now) const {
    const std::int64_t elapsed = (now - at_).count();
    return elapsed >= dividedUp(taken_, requests_) ? 0 : taken_ - elapsed * requests_;
  }

  // Converts the taken tokens into parts of the new window, rounded up to a whole part.
  void cutInto(std::int64_t window) {
    taken_ = taken_ / window_ * window + dividedUp(taken_ % window_ * window, window_);
    window_ = window;
  }

  std::int64_t taken_ = 0;  // in parts: 1 / window_ of a token
  Instant at_;              // moment to which `taken_` belongs
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

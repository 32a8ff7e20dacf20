// Contract of the rate limiting stage: a limiter counts requests and concurrent calls. The host has the table of limits
// (core/http/API.md, "Rate limits"; core/decisions/limits.md).
#pragma once

#include <cstdint>
#include <string_view>

#include "jobq/error.h"
#include "jobq/plugin.h"
#include "jobq/time.h"

namespace jobq {

/// The limits of a key. `requests` and `concurrent` may differ from call to call for the same key, because both grow
/// with the workers and shrink back; earlier requests stay counted. `window` is equal in all calls for a key.
struct RateLimit {
  /// Greatest number of requests within `window`. With 0 the number has no limit, and the limiter does not count the
  /// request. The limiter decides whether the window slides or a bucket fills evenly. A key that was idle for a window
  /// may always use all requests at once.
  std::uint32_t requests = 0;
  Millis window{10'000};  ///< 1 ms to 7 days
  /// Greatest number of concurrent calls. With 0 the number has no limit, and the limiter still counts the calls.
  std::uint32_t concurrent = 0;
};

/// Answer of a limiter to a request.
struct RateVerdict {
  bool allowed = false;
  /// Never 0 after a refusal. Refused by `requests`: the time until the earliest moment at which a request succeeds,
  /// with no other request in between and the same limit; a millisecond earlier is refused. Refused by `concurrent`: 1
  /// s, because the moment of the next leave() is unknown. Refused by both: the time by `requests`.
  Millis retryAfter{0};
  /// Rest of `requests` after this call, for the RateLimit headers. 0 after a refusal and without such a limit.
  std::uint32_t remaining = 0;
};

/// A rate limiter plugin. Any thread may call, many calls at once. Keys are few (`<endpoint>/<operation>`), and no key
/// influences another. A limiter forgets a key without counted requests and without calls sooner or later, and frees
/// its memory.
class JOBQ_VISIBLE RateLimiter : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::rateLimiter;

  /// Counts one request for `key` and admits the call, or refuses both. A refused request counts for nothing. The
  /// argument `now` is the only source of time: instants come from one clock that does not go back, but threads may
  /// pass the instants slightly out of order. An instant older than the newest instant of the key counts as the newest,
  /// also for `retryAfter`. Throws only std::bad_alloc, and counts nothing then.
  [[nodiscard]] virtual RateVerdict enter(std::string_view key, const RateLimit& limit, Instant now) = 0;

  /// Ends an admitted call. The host calls leave() exactly once for each admitted enter() and never for a refused
  /// enter(); an object of the caller keeps the pair. Does not throw.
  virtual void leave(std::string_view key) = 0;
};

}  // namespace jobq

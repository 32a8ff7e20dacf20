// Room 3 (turnstile): too fast, too many at once? The table of limits is the host's; a limiter only counts.
// How often and how many at once: api.md "Limits", core/decisions/limits.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "jobq/error.h"
#include "jobq/plugin.h"
#include "jobq/time.h"

namespace jobq {

/// `requests` and `concurrent` may be others with every call for the same key, because they grow with the workers and
/// shrink back: what was counted before stays counted. `window` is the same in every call for a key.
struct RateLimit {
  /// At most this many within `window`; 0: no limit, and what passes then is not counted. Whether the window slides or
  /// a bucket is refilled evenly is the limiter's choice; a key that was idle for a window may always use all at once.
  std::uint32_t requests = 0;
  Millis window{10'000};         ///< 1 ms to 7 days
  std::uint32_t concurrent = 0;  ///< at most this many at once; 0: no limit, but who is inside is still known
};

struct RateVerdict {
  bool allowed = false;
  /// When refused, never 0. By `requests`: the time until the earliest moment at which asking again succeeds if nobody
  /// else asks and the limit stays; a millisecond less is refused. By `concurrent`: 1 s, because nobody knows when a
  /// place is free. By both: as by `requests`.
  Millis retryAfter{0};
  /// What is left of `requests` after this call, for the RateLimit-* headers; 0 when refused or without that limit.
  std::uint32_t remaining = 0;
};

/// Any thread. Keys are few (`<endpoint>/<operation>`), and one never influences another. A key with nothing counted
/// and nobody inside is forgotten sooner or later: its memory is free again.
class JOBQ_VISIBLE RateLimiter : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::rateLimiter;

  /// A refused request counts for nothing. Time is an argument, never asked for: `now` comes from one clock that does
  /// not go back, but threads may bring it slightly out of order. An instant older than the newest that the key has
  /// seen counts as that one, for `retryAfter` too. Throws only std::bad_alloc, having counted nothing.
  [[nodiscard]] virtual RateVerdict enter(std::string_view key, const RateLimit& limit, Instant now) = 0;

  /// Exactly once for each allowed enter(), never for a refused one (the host keeps the pair in an RAII ticket). Does
  /// not throw.
  virtual void leave(std::string_view key) = 0;
};

}  // namespace jobq

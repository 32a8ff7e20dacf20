// Room 3 (turnstile): too fast, too many at once? The table of limits is the host's; a limiter only counts.
#pragma once

#include <cstdint>
#include <string_view>

#include "jobq/plugin.h"

namespace jobq {

struct RateLimit {
  std::uint32_t requests = 0;  ///< at most this many within `window`; 0: no limit
  Millis window{10'000};
  std::uint32_t concurrent = 0;  ///< at most this many at once; 0: no limit
};

struct RateVerdict {
  bool allowed = false;
  Millis retryAfter{0};         ///< when refused: the earliest moment at which asking again can succeed
  std::uint32_t remaining = 0;  ///< requests left in the window, for the RateLimit-* headers
};

/// Any thread. Time is an argument, never asked for. An allowed enter() is paired with exactly one leave(); a refused
/// one with none (the host keeps the pair in an RAII ticket).
class JOBQ_VISIBLE RateLimiter : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::rateLimiter;

  [[nodiscard]] virtual RateVerdict enter(std::string_view key, const RateLimit& limit, Instant now) = 0;
  virtual void leave(std::string_view key) = 0;
};

}  // namespace jobq

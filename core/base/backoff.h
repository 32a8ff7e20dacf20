// Pauses between tries of an operation that fails for a while, such as a write to the storage.
#pragma once

#include <stop_token>
#include <utility>

#include "jobq/time.h"

namespace jobq {

/// Blocks until `end`, or until a stop is requested. Returns false if a stop was requested. Any thread.
bool pauseUntil(Clock& clock, Instant end, const std::stop_token& stop);

/// Pauses of one thread that repeats an operation until success or until a stop:
///
///     Backoff backoff(clock, stop);
///     while (!succeeds()) {
///       if (!backoff.pause()) return;
///     }
class Backoff {
 public:
  static constexpr Millis kFirstPause{50};
  static constexpr Millis kLongestPause{2'000};

  /// `clock` outlives the object.
  Backoff(Clock& clock, std::stop_token stop) : clock_(clock), stop_(std::move(stop)) {}

  /// Blocks for kFirstPause at first, then twice as long each time, at most kLongestPause, and not beyond `latest`.
  /// Returns false if a stop was requested; the pause then ends at once.
  bool pause(Instant latest = Instant::max());

 private:
  Clock& clock_;
  const std::stop_token stop_;
  Millis next_ = kFirstPause;
};

}  // namespace jobq

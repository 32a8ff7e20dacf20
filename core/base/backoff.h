// The rests between tries of something that fails for a while, such as a write to the storage.
#pragma once

#include <stop_token>
#include <utility>

#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// For one thread that has something to offer until it is taken, or it is told to stop:
///
///     Backoff patience(clock, stop);
///     while (!taken()) {
///       if (!patience.rest()) return;
///     }
class Backoff {
 public:
  static constexpr Millis kFirstPause{50};
  static constexpr Millis kLongestPause{2'000};

  /// `clock` outlives it.
  Backoff(Clock& clock, std::stop_token stop) : clock_(clock), stop_(std::move(stop)) {}

  /// Lasts kFirstRest at first, then twice as long each time, at most kLongestRest, and not beyond `latest`. False: a
  /// stop was requested, and the rest ended at once.
  bool pause(Instant latest = Instant::max());

 private:
  Clock& clock_;
  const std::stop_token stop_;
  Millis next_ = kFirstPause;
  Mutex mutex_;  // guards nothing: a condition needs one
  Condition stopped_;
};

}  // namespace jobq

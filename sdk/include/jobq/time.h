// Time as jobq counts it: whole milliseconds on one clock, the store's.
//
// Nodes exchange durations, never instants (design: "Whose clock"). Nothing in the tree asks the operating system for
// the time except a Clock, so that tests move time by hand and no test sleeps.
#pragma once

#include <chrono>
#include <cstdint>

#include "jobq/mutex.h"

namespace jobq {

using Millis = std::chrono::milliseconds;
using Instant = std::chrono::time_point<std::chrono::system_clock, Millis>;

constexpr std::int64_t toEpochMillis(Instant instant) noexcept { return instant.time_since_epoch().count(); }
constexpr Instant fromEpochMillis(std::int64_t millis) noexcept { return Instant(Millis(millis)); }

/// Where the time comes from. Any thread. The host owns it and it outlives every plugin object.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Never goes back while the process lives.
  virtual Instant now() const = 0;

  /// Waits on `condition` until it is notified or now() has reached `deadline`, and may return earlier without cause:
  /// call it in a loop. `mutex` is held on entry and on return, and released meanwhile.
  virtual void waitUntil(Mutex& mutex, Condition& condition, Instant deadline) JOBQ_REQUIRES(mutex) = 0;
};

}  // namespace jobq

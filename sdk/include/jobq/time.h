// Time in jobq: whole milliseconds on one clock, the clock of the storage.
//
// Nodes exchange durations, never instants. Code asks no operating system for the time and uses a Clock instead, so
// tests move time by hand and no test sleeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "jobq/mutex.h"

namespace jobq {

using Millis = std::chrono::milliseconds;
using Instant = std::chrono::time_point<std::chrono::system_clock, Millis>;

/// Returns the milliseconds since 1970-01-01T00:00:00Z.
constexpr std::int64_t toEpochMillis(Instant instant) noexcept { return instant.time_since_epoch().count(); }
/// Returns the instant that is `millis` milliseconds after 1970-01-01T00:00:00Z.
constexpr Instant fromEpochMillis(std::int64_t millis) noexcept { return Instant(Millis(millis)); }

/// A source of time. The host owns the clock, and the clock outlives every plugin object. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Returns the present time. The time never goes back during the life of the process.
  virtual Instant now() const = 0;

  /// Blocks on `condition` until a notification, or until now() has reached `deadline`. The call may return earlier
  /// without a notification: a caller waits in a loop. The calling thread holds `mutex` on entry and on return; the
  /// call releases the mutex meanwhile.
  virtual void waitUntil(Mutex& mutex, Condition& condition, Instant deadline) JOBQ_REQUIRES(mutex) = 0;

  /// Returns how far now() is ahead of the right time, negative if now() is behind; an empty optional if no service
  /// keeps the machine's time right. The default implementation returns 0.
  virtual std::optional<Millis> lead() const { return Millis::zero(); }
};

}  // namespace jobq

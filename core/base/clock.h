// The server's two clocks. Leases, timeouts and expiry count by SystemClock, which runs evenly and never goes back.
// WallClock, the time of day, judges times that others read or bring: signatures, the expiry of keys, times in answers.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// The time of day as the machine has it now. It goes forwards and back whenever the machine's time is set. Any thread.
class WallClock {
 public:
  virtual ~WallClock() = default;
  virtual Instant now() const = 0;
};

class SystemWallClock final : public WallClock {
 public:
  Instant now() const override;
};

/// A Clock's time as the time of day, where there is only one clock. `clock` outlives it.
class SameTime final : public WallClock {
 public:
  explicit SameTime(const Clock& clock) : clock_(clock) {}
  Instant now() const override { return clock_.now(); }

 private:
  const Clock& clock_;
};

/// The machine's two sources of time, which tests replace. Any thread.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual std::chrono::system_clock::time_point wall() const;
  virtual std::chrono::steady_clock::time_point steady() const;

  static const TimeSource& ofMachine();
};

/// Wall time at its start plus the steady clock. When the machine's time is set forwards, or the machine was suspended,
/// follow() catches up by a tenth of the time that passes, and by one second a call at most: no lease, timeout or
/// retention ends early by more than a tenth, nor by a jump. A machine's time that is set back is not followed.
class SystemClock final : public Clock {
 public:
  explicit SystemClock(const TimeSource& source = TimeSource::ofMachine());

  Instant now() const override;
  void waitUntil(Mutex& mutex, Condition& condition, Instant deadline) override JOBQ_REQUIRES(mutex);

  /// Catches up with the machine's time, and returns by how much that is ahead; negative if it is behind. Called by one
  /// thread, every second or so.
  Millis follow();

 private:
  const TimeSource& source_;
  const std::chrono::system_clock::time_point wallAtStart_;
  const std::chrono::steady_clock::time_point steadyAtStart_;
  std::chrono::steady_clock::time_point followedAt_;
  std::atomic<std::chrono::system_clock::duration> caughtUp_ = std::chrono::system_clock::duration::zero();
};

/// `2026-01-31T12:00:00.123Z`.
std::string toIso8601(Instant instant);

/// Reads `2027-01-01T00:00:00Z`, with or without three digits of milliseconds; nothing if it is anything else.
std::optional<Instant> fromIso8601(const std::string& text);

}  // namespace jobq

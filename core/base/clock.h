// The server's two clocks. Leases, timeouts and expiry use SystemClock, which runs evenly and never goes back.
// WallClock, the time of day, is for times read or sent by others: signatures, the expiry of keys, times in answers.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// The machine's present time of day. The time goes forwards and back whenever the machine's time is set. Any thread
/// may call.
class WallClock {
 public:
  virtual ~WallClock() = default;
  virtual Instant now() const = 0;
};

class SystemWallClock final : public WallClock {
 public:
  Instant now() const override;
};

/// Gives the time of a Clock as the time of day, for servers with only one clock. `clock` outlives the object.
class ClockAsWallClock final : public WallClock {
 public:
  explicit ClockAsWallClock(const Clock& clock) : clock_(clock) {}
  Instant now() const override { return clock_.now(); }

 private:
  const Clock& clock_;
};

/// The machine's two sources of time, replaceable by tests. Any thread may call.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual std::chrono::system_clock::time_point wall() const;
  virtual std::chrono::steady_clock::time_point steady() const;
  /// Returns true if a service keeps the time of day right, such as NTP, as the kernel says.
  virtual bool isSynchronised() const;

  /// Returns the source that reads the clocks of the machine; the source lives as long as the process.
  static const TimeSource& ofMachine();
};

/// Wall time at the start plus the steady clock. When the machine's time is set forwards, or the machine was suspended,
/// follow() catches up by a tenth of the passing time, and by at most one second a call: no lease, timeout or retention
/// ends early by more than a tenth, nor by a jump. A machine's time that is set back is not followed.
class SystemClock final : public Clock {
 public:
  /// `source` outlives the clock.
  explicit SystemClock(const TimeSource& source = TimeSource::ofMachine());

  Instant now() const override;
  void waitUntil(Mutex& mutex, Condition& condition, Instant deadline) override JOBQ_REQUIRES(mutex);
  std::optional<Millis> lead() const override;

  /// Catches up with the machine's time. Returns the lead of the machine's time before the step, negative if the
  /// machine's time is behind. One thread calls, about every second.
  Millis follow();

 private:
  const TimeSource& source_;
  const std::chrono::system_clock::time_point wallAtStart_;
  const std::chrono::steady_clock::time_point steadyAtStart_;
  std::chrono::steady_clock::time_point followedAt_;
  std::atomic<std::chrono::system_clock::duration> caughtUp_ = std::chrono::system_clock::duration::zero();
};

/// Returns a time such as `2026-01-31T12:00:00.123Z`.
std::string toIso8601(Instant instant);

/// Reads `2027-01-01T00:00:00Z`, with or without three digits of milliseconds; returns nullopt for any other text.
std::optional<Instant> fromIso8601(const std::string& text);

}  // namespace jobq

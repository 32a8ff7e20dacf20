// The server's own clock: wall time at its start plus the steady clock, so that it never goes back and no adjustment
// of the machine's time shortens or lengthens a lease.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

class SystemClock final : public Clock {
 public:
  SystemClock();

  Instant now() const override;
  void waitUntil(Mutex& mutex, Condition& condition, Instant deadline) override JOBQ_REQUIRES(mutex);

 private:
  const std::chrono::system_clock::time_point wallAtStart_;
  const std::chrono::steady_clock::time_point steadyAtStart_;
};

/// `2026-01-31T12:00:00.123Z`.
std::string toIso8601(Instant instant);

/// Reads `2027-01-01T00:00:00Z`, with or without three digits of milliseconds; nothing if it is anything else.
std::optional<Instant> fromIso8601(const std::string& text);

}  // namespace jobq

// How many workers an endpoint should have now. A pure decision: the dispatcher says what it sees, and hires. Nobody is
// sent away here: workers above workersMin leave when they were idle for the endpoint's idleTimeout, and that time is
// what keeps the number from flapping. While no normal job waits, nobody is hired for one, so a worker that was just
// released is never wanted back before a job comes.
#pragma once

#include <cstdint>
#include <optional>

#include "core/config/scaling.h"
#include "jobq/time.h"

namespace jobq {

/// What the dispatcher knows of one endpoint, at one moment. Low-priority jobs in line are not in it: they never count
/// (api.md, "policy object").
struct ScalerView {
  Scaling scaling;
  std::uint32_t workersMin = 0;
  std::uint32_t workersMax = 3;      ///< wins when it is below workersMin
  std::uint32_t workers = 0;         ///< slots that are taken: those below, and stuck workers that were not replaced
  std::uint32_t coming = 0;          ///< idle or starting: will take a job soon
  std::uint32_t busy = 0;            ///< with normal jobs
  std::uint32_t busyLow = 0;         ///< with low-priority jobs: neither demand nor, for normal jobs, capacity
  std::uint64_t waiting = 0;         ///< normal jobs in line
  std::optional<Millis> headWait{};  ///< how long the first of them has waited; nothing counts as not at all
};

struct ScalerWish {
  /// At least as many as there are, and at most workersMax, or as many as there are when they are more already.
  std::uint32_t workers = 0;

  /// In how long to ask again although nothing else happened; always above 0. Nothing: the next event is enough. Events
  /// are: the line was empty and has a job, a worker is ready, has finished or is gone. That a line became longer is
  /// none (core/jobs/queue_signal.h), so requestCount asks again by itself while jobs wait and there is room for a
  /// worker.
  std::optional<Millis> again{};

  bool operator==(const ScalerWish&) const = default;
};

/// The rules of wire.md, section 4.1:
/// - queueDelay: one worker more when the first normal job in line has waited longer than `value` seconds and nobody is
///   coming. Each worker takes the job at the head, so the next look judges the next job. When no worker at all serves
///   normal jobs, the first one starts at once, because waiting would help nobody.
/// - requestCount: one worker for each `value` normal jobs, in line or running, rounded up. Those who are coming count
///   as there.
/// Any thread; fails never.
ScalerWish scale(const ScalerView& view) noexcept;

}  // namespace jobq

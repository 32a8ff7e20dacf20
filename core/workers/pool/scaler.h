// Decides how many workers an endpoint should have. A pure function: WorkerPool gives a view of the endpoint, and
// WorkerSupervisor starts workers. The scaler stops no worker. Workers above workersMin leave after the endpoint's
// idleTimeout without a job, and the idleTimeout keeps the number from flapping. Beyond workersMin the scaler asks for
// a worker only while a normal job waits, so a worker that has just left is not needed again before the next job.
#pragma once

#include <cstdint>
#include <optional>

#include "core/config/scaling.h"
#include "jobq/time.h"

namespace jobq {

/// State of an endpoint at one moment. Queued low-priority jobs are left out, because low-priority jobs never count
/// (core/http/API.md, "Policy").
struct ScalerView {
  Scaling scaling;
  std::uint32_t workersMin = 0;
  std::uint32_t workersMax = 3;      ///< if below workersMin, workersMin is ignored
  std::uint32_t workers = 0;         ///< slots in use: coming, busy and busyLow, and stuck workers that hold a slot
  std::uint32_t coming = 0;          ///< idle, reserved or starting: can run a job soon
  std::uint32_t busy = 0;            ///< with normal jobs
  std::uint32_t busyLow = 0;         ///< with low-priority jobs: neither demand nor capacity for normal jobs
  std::uint64_t waiting = 0;         ///< normal jobs in the queue
  std::optional<Millis> headWait{};  ///< waiting time of the first normal job; nullopt counts as zero
};

/// A number of workers, and the time of the next decision.
struct ScalingDecision {
  /// The number to have: at least the present number, and at most workersMax unless more workers exist already.
  std::uint32_t workers = 0;

  /// Time until the next decision if no event comes before, always above 0; nullopt if an event will come early enough.
  /// Events are: a job in an empty queue, and a worker that is ready without a next job or is gone. A job in a queue
  /// that has jobs already is no event (`core/jobs/queue_signal.h`). So requestCount decides again after 1 s while jobs
  /// wait and a further worker is allowed, and queueDelay when the first job will have waited for too long.
  std::optional<Millis> recheckAfter{};

  bool operator==(const ScalingDecision&) const = default;
};

/// Applies the rules of core/http/API.md, "Scaling":
/// - queueDelay: a further worker when the first normal job has waited longer than `value` seconds and no worker is
///   coming. One worker at a time: the new worker takes the first job, and the rule applies to the next job then. If no
///   worker serves normal jobs, one starts without the delay.
/// - requestCount: a worker for each `value` normal jobs, queued or running, rounded up. Coming workers count.
/// Any thread. Never throws.
ScalingDecision scale(const ScalerView& view) noexcept;

}  // namespace jobq

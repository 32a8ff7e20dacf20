// The queue and the workers of one endpoint as a discrete-event model around `core/workers/pool/scaler.h`, with the
// scaler of the server. The model scales at the same moments as the dispatcher: a clear signal is notified
// (`core/jobs/queue_signal.h`), a worker is ready, an idle time ends, or the scaler's own next time has come. Normal
// jobs go first, in the order of arrival; the idle worker with the lowest number takes the job. No thread sleeps, and
// the same arrivals give the same result.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/scaling.h"
#include "jobq/time.h"

namespace bench {

using jobq::Millis;

/// Times count from the model's beginning.
struct Arrival {
  Millis at;
  Millis duration;
  bool low = false;
};

struct WorkerPoolRules {
  jobq::Scaling scaling;
  std::uint32_t workersMin = 0;
  std::uint32_t workersMax = 20;
  Millis idleTimeout{5'000};
  Millis startTime{2'000};  ///< from the decision to start a worker until its first possible job
};

struct WorkerPoolRecord {
  std::vector<Millis> delays;     ///< delays of the normal jobs, sorted
  std::vector<Millis> lowDelays;  ///< delays of the low-priority jobs with a run, sorted
  std::vector<Millis> starts;     ///< times of the decisions to start a worker, in order
  std::vector<Millis> releases;
  std::uint32_t most = 0;  ///< workers at one moment
  Millis workerTime{0};    ///< sum over all workers, from start to release, until `end`
  Millis shortestLife = Millis::max();
};

/// Plays until every job with a possible run has run. `arrivals` must be in order. `end` limits only workerTime.
WorkerPoolRecord playWorkerPool(const WorkerPoolRules& rules, const std::vector<Arrival>& arrivals, Millis end);

/// Returns the smallest value not exceeded by `share` (0 to 1) of the values; 0 without values.
Millis quantile(const std::vector<Millis>& sorted, double share);

}  // namespace bench

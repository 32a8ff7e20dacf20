// One endpoint's line and workers as a discrete-event model around core/workers/scaler.h, which decides as it does in
// the server. It looks when the dispatcher looks: a bell that was silent rings (core/jobs/queue_signal.h), a worker is
// ready, an idle time ends, or the scaler wanted to be asked again. Normal jobs go first, first come first served; of
// the idle workers the one with the lowest number takes the job. Nothing sleeps, and the same arrivals give the same
// result.
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
  Millis startTime{2'000};  ///< from the decision to hire until a worker can take a job
};

struct WorkerPoolRecord {
  std::vector<Millis> delays;     ///< of the normal jobs, sorted
  std::vector<Millis> lowDelays;  ///< of the low-priority jobs that ran, sorted
  std::vector<Millis> starts;     ///< when workers were hired, in order
  std::vector<Millis> releases;
  std::uint32_t most = 0;  ///< workers at one moment
  Millis workerTime{0};    ///< of all workers, from hired to released, until `end`
  Millis shortestLife = Millis::max();
};

/// Plays until every job has run that will, `arrivals` being in order. `end` limits nothing but workerTime.
WorkerPoolRecord playWorkerPool(const WorkerPoolRules& rules, const std::vector<Arrival>& arrivals, Millis end);

/// The smallest value that `share` (0 to 1) of them do not exceed; 0 of none.
Millis quantile(const std::vector<Millis>& sorted, double share);

}  // namespace bench

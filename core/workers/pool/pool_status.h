// The state of a worker pool as the API reports the pool, derived from the numbers of workers by state. Pure functions;
// any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/endpoints/endpoint.h"
#include "core/endpoints/worker_pool_view.h"
#include "jobq/node_store.h"

namespace jobq {

/// The pool of an endpoint, as copied at one moment.
struct PoolStatus {
  bool exists = false;  ///< false: the endpoint has no pool on this node
  WorkerCounts counts{};
  bool isDrained = false;   ///< an administrator lets this node drain, and no other node claims jobs
  bool isLaunched = false;  ///< a launcher starts remote workers of the endpoint
  bool lacksGpu = false;    ///< a launcher would start a worker with more free GPUs
  /// Why the launcher starts none, or, with isLaunched, why the last start failed.
  std::optional<std::string> launchFault{};
};

/// Returns true if each worker of the pool leaves or is stuck.
bool hasNoActiveWorkers(const PoolStatus& status) noexcept;

/// Returns the reason why a job of `endpoint` waits: no_workers, workers_busy, starting, no_gpu, worker_crashing,
/// paused or draining. `lowPriority` is the class of the job.
std::string_view waitReason(const PoolStatus& status, const Endpoint& endpoint, bool lowPriority) noexcept;

/// Returns a sentence that says what to do, if jobs of the endpoint need a remote worker, none is connected, and none
/// is about to be started.
/// `hasServed` tells whether one has been connected since the start of the server, as RemoteRoster remembers.
std::optional<std::string> workerAdvice(const PoolStatus& status, const Endpoint& endpoint, bool hasServed,
                                        AdviceReader reader);

}  // namespace jobq

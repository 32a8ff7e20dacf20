// Carries out the decisions of the worker pools: workers start by the scaler (`core/workers/pool/scaler.h`) and leave
// after the endpoint's idleTimeout without a job, workers of an old release are replaced
// (`core/workers/pool/worker_pool.h`), and stuck workers are noticed. A worker is stuck if its handler still runs
// stopGrace after the stop. Its slot is replaced, for at most maxStuck workers of the endpoint. Every further stuck
// worker keeps its slot, so an endpoint can run out of workers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/workers/node/node_life.h"
#include "core/workers/pool/worker_pool.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/run/executor.h"
#include "core/workers/run/running_jobs.h"
#include "core/workers/run/worker_end.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class QueueSignal;

/// Starts and stops the workers of this node. The tasks (noticeStuck() to startWhereNeeded()) are for the dispatcher
/// thread, which performs each of them once in a pass. Has no lock.
class WorkerSupervisor final : public WorkerEvents {
 public:
  /// Everything here outlives the supervisor.
  struct Deps {
    WorkerPools& pools;
    Storage& storage;
    QueueSignal& queueSignal;
    Executor& executor;
    RunningJobs& running;
    const NodeLife& node;
    Log& log;
  };
  /// `prefix` begins the ids of workers.
  WorkerSupervisor(const Deps& deps, std::string prefix);

  /// Stops a worker that does not stay. Wakes the dispatcher thread only for a reason: a job for the worker, the next
  /// step of a release, or the end of an idle time before the next pass. Throws std::out_of_range for an unknown
  /// worker. Any thread of the executor; the dispatcher thread calls workerGone() too.
  void workerReady(const EndpointId& endpoint, const WorkerId& worker) override;
  void workerGone(const EndpointId& endpoint, const WorkerId& worker, const WorkerEnd& end) override;

  /// Fires the stop token of the attempt if the attempt runs here. The handler has the endpoint's stopGrace to end. Any
  /// thread.
  void stopRun(const LeaseRef& lease);

  /// Stops the runs here whose attempt has ended in the storage. Throws StorageError. Any thread.
  void stopEndedRuns();

  /// Marks and logs workers whose handlers still run stopGrace after the stop.
  void noticeStuck();

  /// Carries out the steps of releases and of deleted endpoints. Throws StorageError.
  void rollReleases();

  /// Ends workers that are idle for too long or too many.
  void stopIdleWorkers();

  /// Starts the workers that endpoints are short of. Throws StorageError.
  void startWhereNeeded();

  /// From now on a running or later task starts no further worker. Any thread.
  void stopStarting() noexcept { stopping_ = true; }

  /// Stops the jobs of retired endpoints at the shutdown, after the last pass of the dispatcher thread.
  void stopRetired();

  /// Sets the time of the dispatcher thread's next pass if nothing wakes the thread before. An event with an earlier
  /// task wakes the thread. Any thread.
  void planPass(Instant at) noexcept { nextPassAt_ = at; }

  /// Returns the time of planPass(). Any thread.
  Instant nextPassAt() const noexcept { return nextPassAt_; }

 private:
  bool rollOne(const EndpointId& endpoint);
  EndpointCounts countQueue(const EndpointId& endpoint);
  std::size_t workersMissing(const EndpointId& endpoint);
  void startWorker(const EndpointId& endpoint, const WorkerPool::Step& why);

  const Deps deps_;
  const std::string prefix_;
  std::atomic<Instant> nextPassAt_{};
  std::atomic<bool> stopping_ = false;
  std::uint64_t workersStarted_ = 0;  // used by the dispatcher thread
};

}  // namespace jobq

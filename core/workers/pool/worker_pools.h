// The worker pools of all endpoints on this node. Decisions only:
// WorkerSupervisor (`core/workers/pool/worker_supervisor.h`) carries the decisions out, and Dispatcher
// (`core/workers/dispatcher.h`) claims jobs for reserved workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/workers/node/node_share.h"
#include "core/workers/pool/locked_pools.h"
#include "core/workers/pool/pool_status.h"
#include "core/workers/pool/scaler.h"
#include "core/workers/pool/worker_pool.h"
#include "core/workers/pool/worker_set.h"
#include "core/workers/run/worker_end.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/lease_store.h"
#include "jobq/mutex.h"
#include "jobq/node_store.h"
#include "jobq/time.h"

namespace jobq {

/// The workers of an endpoint on this node.
struct PoolSummary {
  EndpointId endpoint;
  WorkerCounts counts;
  std::map<std::string, std::size_t> workersOfTemplates;  ///< by id of the template
};

/// Any thread. Calls no executor and no storage; the log and the wakes of the dispatcher are called without the lock.
/// The tasks of the dispatcher's passes (reserveWorkers() without an endpoint, markStuck(), markIdleLeaving(),
/// rollingPools(), beginScaling(), endPass()) visit the pools with a change, a newly set signal, or a time in the past
/// (`core/workers/pool/pool_table.h`).
class WorkerPools : public LockedPools {
 public:
  /// `endpoints` are the endpoints to serve from the start.
  WorkerPools(const Deps& deps, const std::vector<EndpointPtr>& endpoints);

  /// Adds the endpoint or changes its definition. The pool follows the new definition; the current workers keep
  /// theirs until a release replaces them. An endpoint that has no release gets no pool: only a pool that exists here
  /// already changes.
  void setEndpoint(const EndpointPtr& now);

  /// Sets the part of this node in workersMin and workersMax of all endpoints. Workers beyond the part leave when
  /// idle.
  void setShare(const NodeShare& share);

  /// Removes the endpoint: the jobs are stopped and the workers leave.
  void retire(const EndpointId& endpoint);

  /// Returns the present numbers of this node's workers by state.
  PoolStatus status(const EndpointId& endpoint) const;

  /// Returns each of this node's workers and the progress of the endpoint's release.
  WorkerPoolView view(const EndpointId& endpoint) const;

  /// Returns the numbers of workers of each pool.
  std::vector<PoolSummary> summaries() const;

  /// Selection of workers for reserveWorkers().
  struct WorkersToReserve {
    const EndpointId* only;               ///< null: the workers of all endpoints
    std::size_t most;                     ///< for each endpoint
    bool jobIsComing = false;             ///< also without a signal of the endpoint: a job is about to be inserted
    const WorkerId* finishing = nullptr;  ///< not null: this busy worker alone, which stays busy
  };
  /// Reserves idle workers of the endpoints whose signal is set. No other thread claims for a reserved worker. Without
  /// an endpoint only the dispatcher thread calls.
  std::vector<ClaimWant> reserveWorkers(const WorkersToReserve& which);

  /// Makes the workers of `jobs` busy and the other workers of `wants` idle again. Wakes the dispatcher if an endpoint
  /// was retired during the claim: its job has to be stopped.
  void concludeReservations(const std::vector<ClaimWant>& wants, const std::vector<ClaimedJob>& jobs);

  /// Consequences of a worker without a job.
  struct ReadyResult {
    bool stays = false;    ///< false: the caller has to stop the worker
    bool rolling = false;  ///< the next step of a release may be possible
    /// End of the idle time if the pool has workers beyond workersMin; otherwise Instant::max().
    Instant idleUntil = Instant::max();
  };
  /// Records a worker without a job, or, with `next`, a busy worker that begins its next job. If a worker with `next`
  /// must not get a further job, the result has `stays` false and the call changes nothing. Throws std::out_of_range
  /// for an unknown worker.
  ReadyResult recordReady(const EndpointId& endpoint, const WorkerId& worker, const ClaimedJob* next = nullptr);

  /// Records the end of a worker, as WorkerPool::recordGone(). Returns true if the call has halted the release; nullopt
  /// for an endpoint without a pool.
  std::optional<bool> recordGone(const EndpointId& endpoint, const WorkerId& worker, const WorkerEnd& end);

  /// Begins the stop grace of the worker that runs the attempt. Returns the end of the stop grace; nullopt if no worker
  /// here runs the attempt or the stop grace runs already.
  std::optional<Instant> beginStopGrace(const LeaseRef& lease);

  /// Makes the workers stuck whose stop grace is over, and returns them. WorkerPool::slots() no longer counts up to
  /// maxStuck of such workers (core/decisions/workers.md).
  std::vector<StuckWorker> markStuck();

  /// Returns the workers to end because of the endpoint's idleTimeout or of a lowered workersMax, in the state leaving
  /// now.
  std::vector<WorkerId> markIdleLeaving();

  /// A pool with a release, or the end of a deleted endpoint, in progress.
  struct RollingPool {
    EndpointId endpoint;
    bool retiring = false;
  };
  /// Returns the rolling pools. Removes each empty pool that starts no more workers.
  std::vector<RollingPool> rollingPools();

  /// Decides the next step of the endpoint's release; the caller carries the step out.
  WorkerPool::Step nextStep(const EndpointId& endpoint);

  /// The definitions for a new worker.
  struct NewWorker {
    EndpointPtr endpoint;
    ReleasePtr release;
  };
  /// Adds a starting worker, as WorkerPool::addWorker(). Returns nullopt if no worker may start.
  std::optional<NewWorker> addWorker(const EndpointId& endpoint, const WorkerId& worker, const WorkerPool::Step& why);

  /// Returns the endpoints for the scaler, decided without the counts of the queue. The next pass returns an endpoint
  /// again unless workersMissing() has returned 0.
  std::vector<EndpointId> beginScaling();

  /// Returns the workers and the rules of the endpoint as the scaler sees them, without the queue.
  ScalerView scalerView(const EndpointId& endpoint) const;

  /// Asks the scaler with `view`, which is scalerView() from before the queue was counted as `jobs`, and with the
  /// present view. Returns the smaller number of missing workers, so that no job counts both as queued and as running.
  /// Wakes the dispatcher for a further pass if normal jobs wait and the workers changed in between. `others` is the
  /// number of workers of the endpoint at other nodes: all nodes together keep workersMax.
  std::size_t workersMissing(const EndpointId& endpoint, const ScalerView& view, const EndpointCounts& jobs,
                             std::size_t others);

  /// The end of a pass.
  struct PassEnd {
    Instant nextTaskAt;        ///< time of the next task without an event; Instant::max() if no task is planned
    std::uint64_t visits = 0;  ///< visits to pools since the start: the cost of the passes
  };
  /// Ends a pass. The end of a backoff during the pass, or since the begin of a failed pass, is a task too, in the
  /// past.
  PassEnd endPass();

 private:
  NodeShare share_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq

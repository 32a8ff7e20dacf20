// The rules for the workers of one endpoint on this node: how many there are, and the way to a new release. Workers are
// replaced in sequence, at most one missing at a time. A release is halted if its first worker does not start; the
// other workers then go on unchanged (core/decisions/endpoints.md). Plain state without threads, guarded by the mutex
// of WorkerPools. The pool decides, and WorkerSupervisor carries the decisions out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/workers/pool/pool_status.h"
#include "core/workers/pool/scaler.h"
#include "core/workers/pool/worker_set.h"
#include "core/workers/run/worker_end.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread, one at a time.
class WorkerPool {
 public:
  /// The next step of a release, or of a deleted endpoint.
  struct Step {
    /// Workers to end, all idle before.
    std::vector<WorkerId> stoppedWorkers;
    /// Running attempts of a deleted endpoint, to be released and then stopped.
    std::vector<LeaseRef> stopped;
    bool startWorker = false;  ///< a single worker
    bool replaces = false;     ///< the started worker takes the place of another worker
    bool surge = false;        ///< the started worker counts as the replacement of the next leaving worker
  };

  /// `endpoint` is not null.
  explicit WorkerPool(EndpointPtr endpoint) : endpoint_(std::move(endpoint)) {}

  /// Returns the newest definition of the endpoint; never null.
  const EndpointPtr& endpoint() const noexcept { return endpoint_; }

  /// Takes over a changed definition of the endpoint. A new release ends the halt and the backoff.
  void change(const EndpointPtr& now);

  /// With true marks the endpoint as deleted: nextStep() stops the jobs, and all workers leave. With false ends that,
  /// because a new endpoint has the id of the deleted one.
  void setRetiring(bool isRetiring) noexcept { retiring_ = isRetiring; }
  bool isRetiring() const noexcept { return retiring_; }

  /// Gives access to the workers for claims and stops of jobs.
  WorkerSet& workers() noexcept { return workers_; }
  const WorkerSet& workers() const noexcept { return workers_; }

  /// Returns the slots in use, out of workersMax: all workers except leaving workers and except up to maxStuck stuck
  /// workers.
  std::size_t slots() const;

  /// Returns the release for a worker that starts now; null if no worker may start.
  ReleasePtr target() const;

  /// Returns true while a worker of an old release is left to replace, or a replacement is missing.
  bool isRolling() const;

  /// Adds a starting worker for a step, or for the scaler if `why` is empty. Returns the release of the worker; null if
  /// no worker may start, and none is added then.
  ReleasePtr addWorker(const WorkerId& worker, const Step& why, Instant now);

  /// Records a worker without a job. Returns true if the worker stays; otherwise the caller has to stop the worker.
  /// Throws std::out_of_range for an unknown worker.
  bool recordReady(const WorkerId& worker, Instant now);

  /// Records the end of a worker. After a failure the newest release is halted if a different release is proven;
  /// otherwise the backoff doubles. Returns true if the call has halted the release.
  bool recordGone(const WorkerId& worker, const WorkerEnd& end, Instant now);

  /// Decides the next step and records it in the pool; the caller carries the step out. After a failed start no step
  /// comes before the backoff has passed.
  Step nextStep(Instant now);

  /// Decides which idle workers leave, after idleTimeout or because of a lowered workersMax, and records that; the
  /// caller ends the returned workers. `jobsWait` is true if jobs may wait in the queue: idle workers are needed then.
  std::vector<WorkerId> markIdleLeaving(Instant now, bool jobsWait);

  /// Begins a question to the scaler: drops the time of the next decision that the scaler asked for. Returns true if a
  /// worker may start.
  bool beginScaling(Instant now);

  /// Returns the workers and the rules of the endpoint as the scaler sees them, without the queue.
  ScalerView scalerView() const;

  /// Asks the scaler. `view` is scalerView() of a moment near to the count `jobs` of the queue. Returns the number of
  /// workers that the endpoint is short of, at most `room`: with less room than wanted the scaler is asked again after
  /// a second, because workers of other nodes end without an event here.
  std::size_t workersMissing(ScalerView view, const EndpointCounts& jobs, std::size_t room, Instant now);

  /// Returns the time of the next task that no event announces; Instant::max() if there is none.
  Instant nextTaskAt(Instant now) const;

  /// Returns the present numbers of workers by state.
  PoolStatus status(Instant now) const;

  /// Returns each worker and the progress of the release.
  WorkerPoolView view() const;

 private:
  EndpointPtr endpoint_;
  WorkerSet workers_{};
  Instant startAfter_{};                // no worker starts earlier, after a failed start
  Millis backoff_{0};                   // pause after the last failed start, 1 s to 30 s; 0 after a successful start
  Instant scaleAt_ = Instant::max();    // when the scaler wants to be asked again
  ReleasePtr proven_{};                 // the last release of which a worker was ready
  bool halted_ = false;                 // the newest release does not start; `proven_` stays in use
  std::optional<std::string> fault_{};  // reason of the last failed start, until the newest release starts well
  bool retiring_ = false;               // the endpoint is deleted: jobs are stopped and all workers leave
  std::size_t vacancies_ = 0;           // workers that left for the release and have no replacement yet
};

/// Returns true if the workers of the pool come over HTTP: the pool starts none.
bool isRemote(const WorkerPool& pool);

/// Returns true if the pool has workers over HTTP, or, without `areRemote`, threads. Workers that leave or are stuck do
/// not count.
bool hasWorkers(const WorkerPool& pool, bool areRemote);

/// Returns true if the pool has more workers than it may have. A pool of remote workers has too many only if workersMax
/// is 0.
bool hasTooManyWorkers(const WorkerPool& pool);

/// Returns true if the worker is busy and may get its next job with the report of its present one: the worker stays,
/// and is not of an old release whose next worker to leave is still to be chosen.
bool mayGoOn(const WorkerPool& pool, const WorkerId& worker);

}  // namespace jobq

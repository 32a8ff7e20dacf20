// The workers of an endpoint on this node and the way to a new release. Workers are replaced in sequence, at most one
// missing at a time. A release is halted if its first worker does not start; the other workers then go on unchanged
// (core/decisions/endpoints.md).
// Plain state without threads, guarded by the dispatcher's mutex. The dispatcher carries out the steps decided here.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

enum class WorkerState {
  starting,
  idle,
  reserved,  ///< a claim for this worker is under way
  busy,
  stuck,  ///< the handler ignores its stop token
  leaving,
};

/// Returns the name of the state in answers of the API; reserved is "idle", busy is "running".
std::string_view nameOf(WorkerState state) noexcept;

/// A worker as the pool knows it.
struct WorkerInfo {
  WorkerState state = WorkerState::starting;
  Instant since{};      ///< start of the present state
  Instant startedAt{};  ///< start of the worker
  ReleasePtr release{};
  LeaseRef lease{};          ///< copy from the present job
  bool lowPriority = false;  ///< copy from the present job
  /// End of the stop grace of the present job, when the worker becomes stuck; Instant::max() without a stop.
  Instant stuckFrom = Instant::max();
  bool drainAfterJob = false;  ///< the worker leaves after its job and is replaced
  bool replaces = false;       ///< the worker takes the place of a worker that has left
  bool surge = false;          ///< started for the release in a free slot: the next leaving worker counts as replaced
};

/// Guarded by the dispatcher's mutex, like all functions of the pool.
struct WorkerPool {
  EndpointPtr endpoint;
  std::map<WorkerId, WorkerInfo> workers{};
  Instant startAfter{};  ///< no worker starts earlier, after a failed start
  /// Pause after the last failed start, 1 s to 30 s; 0 after a successful start.
  Millis backoff{0};
  Instant scaleAt = Instant::max();  ///< when the scaler wants to be asked again
  ReleasePtr proven{};               ///< the last release of which a worker was ready
  bool halted = false;               ///< the newest release does not start; `proven` stays in use
  std::string fault{};        ///< reason of the last failed start; empty after a successful start of the newest release
  bool retiring = false;      ///< the endpoint is deleted: jobs are stopped and all workers leave
  std::size_t vacancies = 0;  ///< workers that left for the release and have no replacement yet

  /// Returns the number of workers in `state`.
  std::size_t count(WorkerState state) const;
  /// Returns the slots in use, out of workersMax: all workers except leaving workers and except up to maxStuck stuck
  /// workers.
  std::size_t slots() const;
  /// Returns the release for a worker that starts now; null if no worker may start.
  ReleasePtr target() const;
  /// Returns true while a worker of an old release is left to replace, or a replacement is missing.
  bool isRolling() const;

  /// Takes over a changed definition of the endpoint. A new release ends the halt and the backoff.
  void change(const EndpointPtr& now);

  /// Records a worker without a job. Returns true if the worker stays and is idle now; otherwise the caller has to stop
  /// the worker.
  bool takeReady(const WorkerId& worker, Instant now);

  /// Records the end of a worker; a `failure` with text means a failed worker. The newest release is halted then if a
  /// different release is proven; otherwise the backoff doubles.
  void takeGone(const WorkerId& worker, const std::string& failure, Instant now);

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
  /// Decides the next step and records it in the pool; the caller carries the step out.
  Step nextStep();

 private:
  bool takeSurge();
  bool isOutdated(const WorkerInfo& info) const;
  bool mayGoOn() const;
};

}  // namespace jobq

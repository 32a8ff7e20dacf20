// The workers of one endpoint on this node with their states. A change of a state that the transition table
// (`core/workers/pool/worker_state.h`) refuses is a fault of the program: the worker keeps its state, and the refusal
// is kept for the log until collectRefusals(). Plain state without threads and clocks, guarded by the owner's mutex.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/workers/pool/worker_state.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"

namespace jobq {

/// Returns the id of the worker. The pool has a place `<worker>:<number>` for each job that a remote worker may take
/// now; the place of a thread is the id of the thread.
inline std::string_view workerOfPlace(std::string_view place) { return place.substr(0, place.find(':')); }

/// A worker as its pool knows the worker.
struct WorkerInfo {
  WorkerState state = WorkerState::starting;
  Instant since{};      ///< start of the idle time or of the present job
  Instant startedAt{};  ///< start of the worker
  ReleasePtr release{};
  LeaseRef lease{};          ///< copy from the present job
  bool lowPriority = false;  ///< copy from the present job
  /// End of the stop grace of the present job, when the worker becomes stuck; Instant::max() without a stop.
  Instant stuckFrom = Instant::max();
  bool drainAfterJob = false;  ///< the worker leaves after its job and is replaced
  bool replaces = false;       ///< the worker takes the place of a worker that has left
  bool isGone = false;  ///< its owner has left during a claim: the worker is removed unless the claim gives it a job
  bool surge = false;   ///< started for the release in a free slot: the next leaving worker counts as replaced
};

/// Returns false for a worker that leaves, or is stuck and may never leave.
inline bool stays(WorkerState state) { return state != WorkerState::leaving && state != WorkerState::stuck; }

/// A worker whose handler ignores the stop of its job.
struct StuckWorker {
  EndpointId endpoint;
  WorkerId worker;
  JobId job;
};

/// Any thread, one at a time.
class WorkerSet {
 public:
  /// Returns the workers by id.
  const std::map<WorkerId, WorkerInfo>& all() const noexcept { return workers_; }

  /// Returns the number of workers in `state`.
  std::size_t count(WorkerState state) const noexcept { return counts_[static_cast<std::size_t>(state)]; }

  /// Returns the number of workers of each release, without those that leave or are stuck. A number may be 0.
  const std::map<ReleasePtr, std::size_t>& staying() const noexcept { return staying_; }

  /// Adds a new worker, in the state starting. `worker` is not in the set.
  void add(const WorkerId& worker, WorkerInfo info);

  /// Removes the worker, in any state. Returns the last record; nullopt for an unknown worker.
  std::optional<WorkerInfo> remove(const WorkerId& worker);

  /// Records that the worker has no job; the job's stop grace ends. Returns false if the transition table refuses the
  /// event. Throws std::out_of_range for an unknown worker.
  bool makeIdle(const WorkerId& worker, Instant now);

  /// Reserves up to `most` idle workers and returns them. Without memory reserves none.
  std::vector<WorkerId> reserve(std::size_t most);

  /// Reserves the idle worker. Throws std::out_of_range for an unknown worker.
  void reserveWorker(const WorkerId& worker) { (void)apply(worker, workers_.at(worker), WorkerEvent::reserve); }

  /// Records the job of a reserved worker.
  void assignJob(const ClaimedJob& job);

  /// Makes those of `workers` idle that are still reserved. The idle time of a released worker goes on.
  void releaseReserved(const std::vector<WorkerId>& workers);

  /// Removes the worker, unless it has a job. A worker with a claim under way is removed when the claim has no job.
  void removeUnlessBusy(const WorkerId& worker);

  /// Records that the idle worker is told to end.
  void stopWorker(const WorkerId& worker);

  /// Begins the stop grace, until `end`, of the busy worker with the attempt `lease`. Returns false if there is no such
  /// worker or the stop grace runs already.
  bool beginStopGrace(const LeaseRef& lease, Instant end);

  /// Makes the busy workers of `endpoint`, the endpoint of the set, stuck whose stop grace is over at `now`. Returns
  /// them.
  std::vector<StuckWorker> markStuck(const EndpointId& endpoint, Instant now);

  /// Marks the worker to leave after its job. Throws std::out_of_range for an unknown worker.
  void drainAfterJob(const WorkerId& worker) { workers_.at(worker).drainAfterJob = true; }

  /// Uses up a surge worker for a leaving worker. Returns false if there is none.
  bool useSurge();

  /// Makes all surge workers ordinary workers.
  void clearSurge();

  /// Returns a sentence for each refused change of a state since the last call.
  std::vector<std::string> collectRefusals();

 private:
  using Workers = std::map<WorkerId, WorkerInfo>;
  void erase(Workers::iterator worker);
  /// Changes the state. Returns false, and notes the refusal, if the state has no such event.
  bool apply(const WorkerId& worker, WorkerInfo& info, WorkerEvent event);

  std::map<WorkerId, WorkerInfo> workers_;
  std::array<std::size_t, kWorkerStates> counts_{};  // of the workers in each state; asked several times a job
  std::map<ReleasePtr, std::size_t> staying_;        // asked for each job
  std::vector<std::string> refusals_;
};

}  // namespace jobq

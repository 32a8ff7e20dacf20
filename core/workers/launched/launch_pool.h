// The rules for the workers of one endpoint that a launcher runs (sdk/include/jobq/worker_launcher.h): when one starts
// and when one ends. A launched worker is a remote worker: it takes its jobs over HTTP, and the pool of the endpoint
// has its places. Plain state without threads, guarded by the mutex of LaunchedWorkers, which carries the decisions
// out. The rules are in core/decisions/launchers.md.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/workers/pool/scaler.h"
#include "core/workers/remote/remote_view.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/time.h"
#include "jobq/worker_launcher.h"

namespace jobq {

/// A worker that the launcher runs.
struct LaunchedWorker {
  ReleasePtr release{};
  Instant startedAt{};
  Instant busyUntil{};        ///< when it was last seen with a job
  bool hasConnected = false;  ///< it has asked for jobs
  bool hasWorked = false;     ///< it has had a job
  bool isRetired = false;     ///< it gets no further job
  bool isStuck = false;       ///< it ignores the stop of a job
  bool isStopped = false;     ///< the launcher was asked to end it
};

/// One endpoint at one moment, as the pool sees it.
struct LaunchSituation {
  EndpointPtr endpoint{};  ///< with this node's part in the numbers of workers
  ReleasePtr release{};    ///< of new workers; null: none may start, and all have to leave
  RemoteLoads loads{};     ///< of all remote workers of the endpoint, launched or not
  EndpointCounts jobs{};   ///< the queue; only the numbers of queued jobs and the waiting time of the first one count
};

/// One thread at a time.
class LaunchPool {
 public:
  /// The actions for LaunchedWorkers. The pool has recorded them already.
  struct Step {
    std::size_t starts = 0;              ///< workers to start: addWorker() records each
    std::vector<WorkerId> retired;       ///< get no further job
    std::vector<WorkerId> stopped;       ///< have no job and get none: to be ended
    std::vector<WorkerId> killed;        ///< the same, and ignore the stop of a job: to be killed
    std::vector<std::string> givenUp{};  ///< a sentence about each worker that never asked for a job
  };

  /// Decides the next step. Each worker that is retired now is stopped by a later step, when it has no job left.
  Step decide(const LaunchSituation& situation, Instant now);

  /// Records a worker that the launcher begins to start.
  void addWorker(const WorkerId& worker, const ReleasePtr& release, Instant now);

  /// Records the end of a worker; `loads` are those of its endpoint. After a failure no worker starts for 1 s, and for
  /// twice as long after each further one, up to 30 s. Returns true if it was a failure: an end that was not asked for,
  /// with an error or without a job in the worker's life.
  bool recordExit(const WorkerExit& exit, const RemoteLoads& loads, Instant now);

  /// Returns the workers by id.
  const std::map<WorkerId, LaunchedWorker>& all() const noexcept { return workers_; }
  /// Returns true while no worker may start after a failure.
  bool isThrottled(Instant now) const noexcept { return now < startAfter_; }
  /// Returns the reason of the last failure, until a worker has worked since.
  const std::optional<std::string>& fault() const noexcept { return fault_; }

 private:
  void noteLoads(const RemoteLoads& loads, Instant now);
  std::size_t slots(const LaunchSituation& situation) const;
  void stopRetired(const LaunchSituation& situation, Step& step);
  void retireUnfit(const LaunchSituation& situation, Instant now, Step& step);
  void retireIdle(const LaunchSituation& situation, Instant now, Step& step);
  void rollRelease(const LaunchSituation& situation, Step& step);
  std::size_t workersMissing(const LaunchSituation& situation) const;
  void retire(const WorkerId& worker, Step& step);
  void noteFailure(std::string reason, Instant now);

  std::map<WorkerId, LaunchedWorker> workers_;
  Instant startAfter_{};
  Millis backoff_{0};
  std::optional<std::string> fault_{};
};

}  // namespace jobq

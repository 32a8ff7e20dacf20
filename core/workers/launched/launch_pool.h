// The rules for the workers of an endpoint that a launcher runs (sdk/include/jobq/worker_launcher.h): when a worker
// starts and when a worker ends. A launched worker is a remote worker: the worker takes jobs over HTTP, and the pool of
// the endpoint has the places of the worker. Plain state without threads, guarded by the mutex of LaunchedWorkers,
// which carries the decisions out. The rules are in core/decisions/launchers.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/workers/pool/scaler.h"
#include "core/workers/pool/state_table.h"
#include "core/workers/remote/remote_view.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/time.h"
#include "jobq/worker_launcher.h"

namespace jobq {

/// The steps to the end of a launched worker, in this order. A stuck worker is killed when stopped.
enum class LaunchedState {
  serving,
  retired,  ///< the worker gets no further job
  stuck,    ///< the same, and the worker ignores the stop of a job
  stopped,  ///< the launcher was asked to end the worker
};
enum class LaunchedEvent { retire, retireStuck, stop };
using LaunchedTransition = StateChange<LaunchedState, LaunchedEvent>;

/// A retired worker stays retired, whatever the later loads say. A worker is stopped once, and never before retired.
inline constexpr std::array kLaunchedTransitions{
    LaunchedTransition{LaunchedState::serving, LaunchedEvent::retire, LaunchedState::retired},
    LaunchedTransition{LaunchedState::serving, LaunchedEvent::retireStuck, LaunchedState::stuck},
    LaunchedTransition{LaunchedState::retired, LaunchedEvent::stop, LaunchedState::stopped},
    LaunchedTransition{LaunchedState::stuck, LaunchedEvent::stop, LaunchedState::stopped},
};

/// A worker that the launcher runs.
struct LaunchedWorker {
  ReleasePtr release{};
  Instant startedAt{};
  Instant busyUntil{};        ///< when it was last seen with a job
  std::uint32_t slot = 0;     ///< number that no other running worker of the endpoint has here
  bool hasConnected = false;  ///< the worker has asked for jobs
  bool hasWorked = false;     ///< the worker has had a job
  TableState<kLaunchedTransitions> state{};

  bool isRetired() const noexcept { return state.get() != LaunchedState::serving; }
};

/// The state of an endpoint at a moment, as the pool sees the endpoint.
struct LaunchSituation {
  EndpointPtr endpoint{};          ///< with the node's part in the numbers of workers
  ReleasePtr release{};            ///< release of new workers; null if none may start and all have to leave
  RemoteLoads loads{};             ///< loads of all remote workers of the endpoint, launched or not
  EndpointCounts jobs{};           ///< only the numbers of queued jobs and the waiting time of the first job count
  std::size_t gpuRoom = SIZE_MAX;  ///< most workers that can start with the free GPUs
};

/// Not thread-safe.
class LaunchPool {
 public:
  /// The actions for LaunchedWorkers. The pool has recorded the actions already.
  struct Step {
    std::size_t starts = 0;              ///< workers to start: addWorker() records each
    std::vector<WorkerId> retired;       ///< get no further job
    std::vector<WorkerId> stopped;       ///< have no job and get none: to be ended
    std::vector<WorkerId> killed;        ///< the same, and ignore the stop of a job: to be killed
    std::vector<std::string> givenUp{};  ///< a sentence about each worker that never asked for a job
  };

  /// Decides the next step. A worker that the step retires is stopped by a later step, when the worker has no job left.
  Step decide(const LaunchSituation& situation, Instant now);

  /// Records a worker that the launcher begins to start. Returns the slot of the worker: the lowest number from 0 on
  /// that no other worker has. The number is below workersMax, unless workers that leave have not ended yet.
  std::uint32_t addWorker(const WorkerId& worker, const ReleasePtr& release, Instant now);

  /// Records the end of a worker; `loads` are the loads of the worker's endpoint. After a failure no worker starts for
  /// 1 s, and for twice as long after each further failure, up to 30 s. A failure is an end without a request, with an
  /// error or before the worker had a job. Returns true for a failure.
  bool recordExit(const WorkerExit& exit, const RemoteLoads& loads, Instant now);

  /// Returns the workers by id.
  const std::map<WorkerId, LaunchedWorker>& all() const noexcept { return workers_; }
  /// Returns true while no worker may start after a failure.
  bool isThrottled(Instant now) const noexcept { return now < startAfter_; }
  /// Returns true if the last decision would have started more workers with more free GPUs.
  bool lacksGpu() const noexcept { return lacksGpu_; }
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
  void retire(const WorkerId& worker, Step& step, LaunchedEvent event = LaunchedEvent::retire);
  void noteFailure(std::string reason, Instant now);

  std::map<WorkerId, LaunchedWorker> workers_;
  Instant startAfter_{};
  Millis backoff_{0};
  std::optional<std::string> fault_{};
  bool lacksGpu_ = false;
};

}  // namespace jobq

// The workers that one endpoint has on this node, and how they come to a new release: one after the other, so that at
// most one is missing at a time; a release whose first worker does not start halts, and the others go on as they are
// (core/decisions/endpoints.md). Plain state: the dispatcher's mutex guards it, and its hands carry out
// what is decided here.
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
  reserved,  ///< somebody is claiming a job for it
  busy,
  stuck,  ///< its handler ignores its stop token
  leaving,
};

/// As the API tells it.
std::string_view nameOf(WorkerState state) noexcept;

struct WorkerInfo {
  WorkerState state = WorkerState::starting;
  Instant since{};      ///< of the duty
  Instant startedAt{};  ///< of the worker
  ReleasePtr release{};
  LeaseRef lease{};                    ///< of the job, while busy
  bool lowPriority = false;            ///< of the job, while busy
  Instant stuckFrom = Instant::max();  ///< when its job was told to stop
  bool drainAfterJob = false;          ///< it leaves when it is free: another one takes its place
  bool replaces = false;               ///< it takes the place of one that has left
  bool surge = false;                  ///< hired for the release while there was room: the next who leaves is replaced
};

struct WorkerPool {
  EndpointPtr endpoint;
  std::map<WorkerId, WorkerInfo> workers{};
  Instant startAfter{};  ///< no hiring before, after a worker failed to start
  Millis backoff{0};
  Instant scaleAt = Instant::max();  ///< when the scaler wants to look again
  ReleasePtr proven{};               ///< the last release of which a worker was ready
  bool halted = false;               ///< the newest release does not start: `proven` goes on
  std::string fault{};               ///< why a worker could not start; empty when the last one could
  bool retiring = false;             ///< the endpoint is gone: jobs are stopped, everybody leaves
  std::size_t vacancies = 0;         ///< places of workers that left for the release's sake

  std::size_t count(WorkerState state) const;
  /// Of workersMax: whoever works or may work, and those who are stuck beyond what is replaced.
  std::size_t slots() const;
  /// What a worker that is hired now runs; null: nobody is hired.
  ReleasePtr target() const;
  bool isRolling() const;

  /// The endpoint has changed.
  void change(const EndpointPtr& now);

  /// The worker has no job. True: it stays, and is idle now; otherwise it has to be dismissed.
  bool takeReady(const WorkerId& worker, Instant now);

  /// The worker has ended, because it could not start when `failure` is not empty.
  void takeGone(const WorkerId& worker, const std::string& failure, Instant now);

  /// What has to be done next for the release, or for an endpoint that is gone.
  struct Step {
    std::vector<WorkerId> stoppedWorkers;
    std::vector<LeaseRef> stopped;
    bool startWorker = false;  ///< one
    bool replaces = false;     ///< that one takes the place of another
    bool surge = false;        ///< that one will have taken the place of the next who leaves
  };
  Step nextStep();

 private:
  bool takeSurge();
  bool isOutdated(const WorkerInfo& info) const;
  bool mayGoOn() const;
};

}  // namespace jobq

// Room 8 (workbench): where does it run? An executor keeps workers; the dispatcher decides how many there are and what
// each of them does. Today a worker is a thread; a child process and a remote machine use the same verbs.
#pragma once

#include <string>

#include "core/endpoints/endpoint.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"

namespace jobq {

/// What an executor tells the dispatcher, from any of its threads.
class WorkerEvents {
 public:
  virtual ~WorkerEvents() = default;

  /// The worker has no job and can take one: after its start, and after each job.
  virtual void workerReady(const EndpointId& endpoint, const WorkerId& worker) = 0;

  /// The worker has ended. `failure` is why it could not start; empty when it was dismissed.
  virtual void workerGone(const EndpointId& endpoint, const WorkerId& worker, const std::string& failure) = 0;
};

/// Any thread assigns and dismisses; one thread (the dispatcher's) hires.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Starts a worker that runs `release`; workerReady or workerGone follows. Throws std::system_error when the machine
  /// has no thread left: then nothing was started.
  virtual void startWorker(const EndpointPtr& endpoint, const ReleasePtr& release, const WorkerId& worker,
                           WorkerEvents& events) = 0;

  /// Gives a job to a worker that is ready. When this returns, the job can be stopped (RunningJobs).
  virtual void assign(ClaimedJob job) = 0;

  /// Ends a worker that is ready; workerGone follows.
  virtual void stopWorker(const WorkerId& worker) = 0;
};

}  // namespace jobq

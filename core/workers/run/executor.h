// An executor keeps workers; WorkerSupervisor starts and stops workers, and the dispatcher gives each worker its jobs.
// A worker is a thread, or a place of a remote worker (core/workers/executor_choice.h). Planned: a handler
// in a child process of the server.
#pragma once

#include <memory>
#include <utility>

#include "core/endpoints/endpoint.h"
#include "core/jobs/deferred_insert.h"
#include "core/workers/run/worker_end.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"

namespace jobq {

/// Reports of an executor to WorkerSupervisor. Any thread of the executor calls the functions.
class WorkerEvents {
 public:
  virtual ~WorkerEvents() = default;

  /// Reports a worker without a job, ready for the next job: after its start, and after each job unless the report of
  /// the job has brought the next one.
  virtual void workerReady(const EndpointId& endpoint, const WorkerId& worker) = 0;

  /// Reports the end of the worker.
  virtual void workerGone(const EndpointId& endpoint, const WorkerId& worker, const WorkerEnd& end) = 0;
};

/// Keeps workers. Any thread calls assign() and stopWorker(); only the dispatcher thread calls startWorker().
class Executor {
 public:
  virtual ~Executor() = default;

  /// Starts a worker for `release`; workerReady() or workerGone() follows on a thread of the executor. The id is new,
  /// or workerGone() has come for the last worker with this id. `events` outlives the worker. Throws std::system_error
  /// if the machine has no thread left; no worker exists then.
  virtual void startWorker(const EndpointPtr& endpoint, const ReleasePtr& release, const WorkerId& worker,
                           WorkerEvents& events) = 0;

  /// Gives a job to a ready worker, or to a worker inside the report of its last job. The job can be stopped
  /// (RunningJobs) after the return. Throws std::bad_alloc; the worker is still ready then.
  virtual void assign(ClaimedJob job) = 0;

  /// Does the same for a job that may run before the insert. The default implementation stores the job first.
  /// Throws StorageError too.
  virtual void assignUnstored(ClaimedJob job, const std::shared_ptr<DeferredInsert>& insert) {
    insert->store();
    assign(std::move(job));
  }

  /// Called behind the assign() of the last job of LeaseStore::claim(). Until then an executor may keep the jobs of
  /// remote workers, to send them together. Any thread. Throws nothing.
  virtual void sendAssigned() noexcept {}

  /// Ends a ready worker; workerGone() follows. An unknown worker is ignored.
  virtual void stopWorker(const WorkerId& worker) = 0;
};

}  // namespace jobq

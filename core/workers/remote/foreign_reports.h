// Reports of remote workers that reach the node although a different node has handed out the job. Behind a load
// balancer, a report may reach any node.
#pragma once

#include <map>
#include <utility>

#include "core/workers/remote/remote_news_access.h"
#include "core/workers/remote/remote_worker.h"
#include "core/workers/remote/remote_workers.h"
#include "core/workers/run/attempt_reports.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class RunReports;

/// Any thread. The lock is not held while the storage is asked.
class ForeignReports {
 public:
  /// All members outlive the object.
  struct Deps {
    RunReports& reports;
    Storage& storage;
    RemoteWorkers& remote;
    Clock& clock;
  };
  explicit ForeignReports(const Deps& deps) : deps_(deps), remote_(deps.remote.registry()) {}

  /// Returns the attempt that the worker has according to the storage. Returns null if the worker has none, if the
  /// worker is told to stop the job, or if no other node shares the storage. Throws StorageError.
  AttemptReportsPtr find(const RemoteWorkerKey& key, const JobId& job);

  /// Has the worker stop a job that a report of the worker has ended.
  void stopJob(const RemoteWorkerKey& key, const LeaseRef& lease) { remote_.stopJob(key, lease); }

  /// Returns the job of an attempt found by find() to the queue, as a loss. Throws StorageError.
  void loseJob(const LeaseRef& lease);

 private:
  struct Kept {
    AttemptReportsPtr reports;
    Instant lastUsed{};
  };
  void dropOld(Instant now) JOBQ_REQUIRES(mutex_);

  const Deps deps_;
  RemoteNewsAccess remote_;
  Mutex mutex_;
  // Kept for the order of chunks.
  std::map<std::pair<EndpointId, JobId>, Kept> foreign_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq

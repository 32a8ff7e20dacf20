// The insert of a job that runs before the storage has the job. Most runs of a short handler end within a millisecond:
// the job and its outcome then reach the storage in one step (Storage::insertRun()), and a waiting caller pays for one
// write instead of two. Nobody can know the job before: its id is random, and the storage gets the job before its id
// leaves the server or reaches the handler, and at the latest a few milliseconds after the begin of the run
// (core/workers/deferred_inserts.h).
#pragma once

#include <atomic>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Shared by the worker, the waiting caller and the timer of the job. Any thread.
class DeferredInsert {
 public:
  /// The attempt begins now; `run.age` is not read. `storage`, which has insertRun(), `policy` and `clock` outlive the
  /// object.
  DeferredInsert(Storage& storage, Clock& clock, JobSpec job, const QueuePolicy& policy, FirstRun run);
  DeferredInsert(const DeferredInsert&) = delete;
  DeferredInsert& operator=(const DeferredInsert&) = delete;

  /// Returns the job as submitted.
  const JobSpec& job() const noexcept { return job_; }

  /// Stores the job as IN_PROGRESS, unless the storage has the job. Blocks until the storage has the job. Throws
  /// StorageError; the storage does not have the job then.
  void store();

  /// Stores the job with the outcome of its run. Returns false and changes nothing if the storage has the job already:
  /// the outcome is then reported as for any other job. Throws StorageError; the storage does not have the job then.
  [[nodiscard]] bool storeEnded(const Outcome& outcome);

  /// Returns true if the storage has the job.
  bool isStored() const noexcept { return stored_; }

 private:
  /// Returns false if the storage has the job already.
  bool storeOnce(const Outcome* outcome);

  Storage& storage_;
  Clock& clock_;
  const JobSpec job_;
  const QueuePolicy& policy_;
  const FirstRun run_;
  const Instant begin_;
  std::atomic<bool> stored_ = false;
  Mutex mutex_;
  Condition changed_;
  bool storing_ JOBQ_GUARDED_BY(mutex_) = false;  // a thread is inside the storage
};

}  // namespace jobq

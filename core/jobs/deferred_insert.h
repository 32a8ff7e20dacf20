// The insert of a job that runs before the storage has the job. Most runs of a short handler end within a millisecond:
// the job and its outcome then reach the storage in one step (JobStore::insert() with Begun), and a waiting caller pays
// for one write instead of two. No caller can know the job before: the id is random, and the storage gets the job
// before the id leaves the server or reaches the handler, and soon after the begin of a longer run
// (core/workers/deferred_inserts.h).
//
// The storage is asked once. A job that the storage does not take is lost: its caller reads 503, as if the insert of
// any other job had failed, and the outcome of the run is dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Shared by the worker, the waiting caller and the timer of the job. Any thread.
class DeferredInsert {
 public:
  enum class State : std::uint8_t {
    deferred,
    storing,  ///< a thread is inside the storage
    stored,
    lost,      ///< the storage has refused the job
    discarded  ///< the job does not run, and is absent
  };

  /// The attempt begins now; `run.age` and `run.outcome` are not read. `storage`, which has Capability::insertBegun,
  /// `policy` and `clock` outlive the object.
  DeferredInsert(Storage& storage, Clock& clock, JobSpec job, const QueuePolicy& policy, Begun run);
  DeferredInsert(const DeferredInsert&) = delete;
  DeferredInsert& operator=(const DeferredInsert&) = delete;

  /// Returns the job as submitted.
  const JobSpec& job() const noexcept { return job_; }

  /// Stores the job as IN_PROGRESS, unless the storage has the job or the job was discarded. Blocks until the storage
  /// has answered, also the call of another thread. Throws StorageError if the job is lost.
  void store();

  /// Stores the job with the outcome of its run. Returns false if the storage has the job already: the outcome is then
  /// reported as for any other job. Throws StorageError if the job is lost.
  [[nodiscard]] bool storeEnded(const Outcome& outcome);

  /// Discards a deferred job, which does not run. Blocks as store() does.
  void discard();

  State state() const noexcept { return state_; }

 private:
  /// Returns false if the storage has the job already.
  bool storeOnce(const Outcome* outcome);
  void insertBegun(const Outcome* outcome);
  void end(State state, const char* reason);

  Storage& storage_;
  Clock& clock_;
  JobSpec job_;  // never changed
  const QueuePolicy& policy_;
  const Begun run_;
  const Instant begin_;
  std::atomic<State> state_ = State::deferred;  // written under the mutex
  Mutex mutex_;
  Condition changed_;
  std::string reason_ JOBQ_GUARDED_BY(mutex_);  // of a lost job
};

}  // namespace jobq

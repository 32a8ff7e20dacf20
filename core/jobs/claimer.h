// Claims on the threads of callers and workers, without a wait for the thread of the dispatcher.
#pragma once

#include <memory>
#include <optional>

#include "core/jobs/queue_signal.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/lease_store.h"
#include "jobq/queue_policy.h"

namespace jobq {

class DeferredInsert;

/// The end of a run, as it is stored.
struct FinishedRun {
  ReportResult result = ReportResult::accepted;
  bool hasNext = false;  ///< the worker has its next job, or was reported ready already
};

/// Claims jobs on the thread of a caller or of a worker. Implemented by the Dispatcher.
class Claimer {
 public:
  virtual ~Claimer() = default;

  /// Gives waiting jobs of the endpoint to idle workers. Any thread may call; may block for one claim of the storage.
  /// Throws nothing.
  virtual void claimForCaller(const EndpointId& endpoint) = 0;

  /// Stores the job of a caller about to wait for the job, and gives waiting jobs of its endpoint to idle workers in
  /// the same step of the storage (Storage::insertAndClaim). Until JobStore::find() returns the job, a loss of power
  /// may undo the step. Returns the result of the insert. Returns no value and an unchanged `job` if no worker is idle,
  /// or the storage has no such step or has not answered: the caller then stores the job itself, and a second insert
  /// changes nothing. Throws StorageError if the job is not stored. Any thread.
  virtual std::optional<InsertResult> insertForCaller(JobSpec& job, const QueuePolicy& policy,
                                                      const std::optional<Idempotency>& idempotency) = 0;

  /// Gives the job of a caller about to wait to an idle worker, and leaves the insert to the end of the run
  /// (core/jobs/deferred_insert.h). Returns null if no worker is idle, if other jobs wait, or if the runs of the
  /// endpoint are not known to be brief; the caller then stores the job. `policy` outlives the insert. Throws
  /// std::bad_alloc; the caller then answers with an error. Any thread.
  virtual std::shared_ptr<DeferredInsert> runForCaller(const JobSpec& job, const QueuePolicy& policy) = 0;

  /// Records the end of a worker's job and gives the worker the next job of its endpoint, if one waits, in the same
  /// step of the storage (LeaseStore::finish). If no caller learns of the end now, `isTold` is false, and the worker
  /// does not wait for the disk (Durability::unsynced). Returns no value, and nothing happened, if the storage has no
  /// such step, if the node may not claim or stops, or if the worker must not get a job and the end is told. Throws
  /// StorageError; the outcome is not recorded then. Any thread.
  virtual std::optional<FinishedRun> finishAndClaim(const ClaimedJob& job, const EndedAttempt& end, bool isTold) = 0;
};

/// The claimer of a node before and after the Dispatcher exists, which is built after the users of the claimer. Without
/// a claimer no worker is idle: a caller's claim wakes the dispatcher.
class ClaimerSlot final : public Claimer {
 public:
  /// `queueSignal` outlives the object.
  explicit ClaimerSlot(QueueSignal& queueSignal) : queueSignal_(queueSignal) {}

  /// Sets the claimer, before the first call of the other functions. `claimer` is valid until their last call.
  void bind(Claimer& claimer) { claimer_ = &claimer; }

  void claimForCaller(const EndpointId& endpoint) override {
    claimer_ == nullptr ? queueSignal_.wake() : claimer_->claimForCaller(endpoint);
  }
  std::optional<InsertResult> insertForCaller(JobSpec& job, const QueuePolicy& policy,
                                              const std::optional<Idempotency>& idempotency) override {
    return claimer_ == nullptr ? std::nullopt : claimer_->insertForCaller(job, policy, idempotency);
  }
  std::shared_ptr<DeferredInsert> runForCaller(const JobSpec& job, const QueuePolicy& policy) override {
    return claimer_ == nullptr ? nullptr : claimer_->runForCaller(job, policy);
  }
  std::optional<FinishedRun> finishAndClaim(const ClaimedJob& job, const EndedAttempt& end, bool isTold) override {
    return claimer_ == nullptr ? std::nullopt : claimer_->finishAndClaim(job, end, isTold);
  }

 private:
  QueueSignal& queueSignal_;
  Claimer* claimer_ = nullptr;
};

}  // namespace jobq

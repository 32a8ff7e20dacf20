// A submission whose caller waits for the storage without a thread: one thread submits many jobs, and the storage takes
// them together (JobStore::insertLater).
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <variant>

#include "core/base/outside_threads.h"
#include "core/base/suspended_call.h"
#include "core/endpoints/endpoint.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"

namespace jobq {

class QueueSignal;

/// One submission, used by one thread at a time. The dispatcher learns of the job by the next
/// LaterSubmissions::announce(), or at once if the submission was destroyed before the insert.
class LaterSubmission {
 public:
  struct Deps {
    Storage& storage;  ///< has Capability::insertLater
    QueueSignal& queueSignal;
    OutsideThreads& underWay;  ///< counts the inserts; close() waits for their ends
  };
  /// Hands the job to the storage. Never blocks for a small input (kLaterInput). `deps` outlives the insert. Throws
  /// std::bad_alloc, and submits nothing then.
  LaterSubmission(const Deps& deps, JobSpec job, const EndpointPtr& endpoint, std::optional<Idempotency> idempotency);
  /// No call is resumed from here on. The job stays submitted.
  ~LaterSubmission();
  LaterSubmission(const LaterSubmission&) = delete;
  LaterSubmission& operator=(const LaterSubmission&) = delete;

  /// Returns the result, as JobService::submit() returns it, or no value while the storage works: `call` is then
  /// resumed once, at the reactor. Throws StorageError if the job is not stored.
  std::optional<InsertResult> poll(const SuspendedCall& call);

 private:
  class Receiver;
  using Result = std::variant<std::monostate, InsertResult, std::exception_ptr>;

  /// Shared with the receiver in the storage.
  struct Shared {
    Mutex mutex;
    Result result JOBQ_GUARDED_BY(mutex);
    SuspendedCall waiting JOBQ_GUARDED_BY(mutex);  // without a resumer while no call waits
    bool isAbandoned JOBQ_GUARDED_BY(mutex) = false;
  };

  const std::shared_ptr<Shared> shared_;
};

/// Makes the submissions of a server. Any thread.
class LaterSubmissions {
 public:
  /// The references outlive the object.
  LaterSubmissions(Storage& storage, QueueSignal& queueSignal) : storage_(storage), queueSignal_(queueSignal) {}
  /// Waits until the storage has told the result of each submission.
  ~LaterSubmissions() { underWay_.close(); }
  LaterSubmissions(const LaterSubmissions&) = delete;
  LaterSubmissions& operator=(const LaterSubmissions&) = delete;

  /// Returns true if submit() may be called. The value is constant.
  bool arePossible() const noexcept { return storage_.capabilities().has(Capability::insertLater); }
  /// Does what JobService::submit() does, without blocking. The result comes later; the storage gets the job also if
  /// the returned object is destroyed before. Throws std::bad_alloc.
  std::unique_ptr<LaterSubmission> submit(JobSpec job, const EndpointPtr& endpoint,
                                          std::optional<Idempotency> idempotency);
  /// Wakes the dispatcher for the jobs of the results since the last call.
  void announce();

 private:
  Storage& storage_;
  QueueSignal& queueSignal_;
  OutsideThreads underWay_;  // counts the inserts
};

}  // namespace jobq

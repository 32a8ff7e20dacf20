// The stage completion: stores the reports and outcomes of runs, returns jobs to the queue, and wakes the threads and
// calls that wait for these reports. Each report names an attempt and has an effect only while the job runs under the
// attempt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/jobs/claimer.h"
#include "core/jobs/queue_signal.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/storage.h"

namespace jobq {

class CompletionNotifier;
class DeferredInsert;
class DeliveryNotifier;

/// Bytes kept of a failed job's error. A longer error is cut, and a mark follows. A sentence replaces an empty error.
inline constexpr std::size_t kMaxErrorBytes = 64UL << 10;

/// Stores reports, and then wakes the callers, the dispatcher or the webhook delivery that wait for the report. Any
/// thread may call the functions; all except announce() throw StorageError if the storage fails.
class RunReports {
 public:
  /// The references outlive the object.
  RunReports(Storage& storage, QueueSignal& queueSignal, Claimer& claimer, CompletionNotifier& completions,
             DeliveryNotifier& deliveries)
      : storage_(storage),
        queueSignal_(queueSignal),
        claimer_(claimer),
        completions_(completions),
        deliveries_(deliveries) {}

  /// Adds chunks to a running job and wakes the callers streaming the job. `first` is the number of the first chunk in
  /// the attempt (ChunkStore::append). Returns staleAttempt if the attempt is over.
  ReportResult append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks);

  /// Sets the progress of a running job (LeaseStore::progress) and wakes the callers that follow the job.
  ReportResult progress(const LeaseRef& lease, std::string json);

  /// Adds a line to the log of a running job (ChunkStore::appendLog), with the number `first` in the log, and wakes the
  /// callers that follow the job.
  ReportResult appendLog(const LeaseRef& lease, std::uint64_t first, LogLine line);

  /// Records how a run ended and wakes the job's waiters. `owesWebhook` tells whether the job has a webhook URL.
  /// Returns staleAttempt if the attempt has already ended: cancelled, timed out, lost, finished or returned to the
  /// queue.
  ReportResult finish(const LeaseRef& lease, Outcome outcome, bool owesWebhook);

  /// Records how several runs ended, as finish() does, with one call of the storage. `oweWebhooks` tells whether any of
  /// the jobs has a webhook URL. Behind an exception any of the outcomes may be recorded, and the caller repeats the
  /// call.
  void finishAll(std::vector<EndedAttempt> ends, bool oweWebhooks);

  /// Returns the end of an attempt as finishAndClaim() records the end: a long error is cut (kMaxErrorBytes).
  static EndedAttempt endOf(const LeaseRef& lease, Outcome outcome);

  /// Records how the run of a worker ended, and gives the worker its next job in the same step of the storage if one
  /// waits and the storage can. An end that no caller awaits and that owes no webhook may be unsynced
  /// (Durability::unsynced). A job that runs before the insert is stored with the outcome instead, and is lost
  /// behind an exception; `insert` is null for other jobs. Wakes no waiter: announceEnd() follows an accepted report.
  FinishedRun finishAndClaim(const ClaimedJob& job, const EndedAttempt& end, DeferredInsert* insert);

  /// Wakes the waiters of a job behind finishAndClaim(). With `answersHere` this thread may send the answers to the
  /// waiting callers, so the worker should be ready for its next job already. Throws nothing.
  void announceEnd(const ClaimedJob& job, bool answersHere) noexcept;

  /// Puts jobs back into their queues, as LeaseStore::giveBack() does: unharmed, or with a counted loss if `areLost`.
  void giveBack(std::span<const LeaseRef> leases, bool areLost);

  /// Reports the results of a sweep, or of LeaseStore::giveBack(), to waiters, dispatcher and webhook delivery. The
  /// calling code has to stop the workers named in SweepResult::stopped.
  void announce(const SweepResult& swept);

  /// Wakes all waiters, the dispatcher for all endpoints, and webhook delivery, because any job may have changed.
  void announceAll();

 private:
  Storage& storage_;
  QueueSignal& queueSignal_;
  Claimer& claimer_;
  CompletionNotifier& completions_;
  DeliveryNotifier& deliveries_;
};

}  // namespace jobq

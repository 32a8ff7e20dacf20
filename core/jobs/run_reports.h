// The stage completion: the reports of workers about their runs. Each report names an attempt and has an effect only
// while the job runs under the attempt.
#pragma once

#include <cstddef>
#include <vector>

#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/storage.h"

namespace jobq {

class CompletionNotifier;
class DeliveryNotifier;
class QueueSignal;

/// Bytes kept of a failed job's error. A longer error is cut and marked.
inline constexpr std::size_t kMaxErrorBytes = 64UL << 10;

/// Stores reports and wakes the callers, the dispatcher and the webhook delivery waiting for them. Any thread may call
/// the functions; all except announce() throw StorageError if the storage fails.
class RunReports {
 public:
  /// The references outlive the object.
  RunReports(Storage& storage, QueueSignal& queueSignal, CompletionNotifier& completions, DeliveryNotifier& deliveries)
      : storage_(storage), queueSignal_(queueSignal), completions_(completions), deliveries_(deliveries) {}

  /// Adds chunks to a running job and wakes the callers streaming the job. Returns staleAttempt if the attempt is over.
  ReportResult append(const LeaseRef& lease, std::vector<Chunk> chunks);

  /// Records how a run ended and wakes the job's waiters. `owesWebhook` tells whether the job has a webhook URL.
  /// Returns staleAttempt if this attempt was ended by another step before.
  ReportResult finish(const LeaseRef& lease, Outcome outcome, bool owesWebhook);

  /// Puts the jobs of unfinished runs back into the queue of `endpoint`, without counting a loss.
  void release(const std::vector<LeaseRef>& leases, const EndpointId& endpoint);

  /// Reports the results of a sweep to waiters, dispatcher and webhook delivery. The calling code has to stop the
  /// workers named in SweepResult::stopped.
  void announce(const SweepResult& swept);

 private:
  Storage& storage_;
  QueueSignal& queueSignal_;
  CompletionNotifier& completions_;
  DeliveryNotifier& deliveries_;
};

}  // namespace jobq

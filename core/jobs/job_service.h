// The operations of callers on jobs: submission, reading, waiting, cancelling. The service calls the storage, notifies
// the dispatcher, and wakes waiting callers. The reports of workers are in core/jobs/run_reports.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/endpoints/endpoint.h"
#include "core/jobs/chunk_feed.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_wait.h"
#include "core/jobs/output_room.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class Claimer;
class DeliveryNotifier;
class QueueSignal;

/// Any thread may call the functions; each throws StorageError if the storage fails.
class JobService {
 public:
  /// The references outlive the object.
  JobService(Storage& storage, QueueSignal& queueSignal, Claimer& claimer, CompletionNotifier& completions,
             DeliveryNotifier& deliveries)
      : storage_(storage),
        queueSignal_(queueSignal),
        claimer_(claimer),
        completions_(completions),
        deliveries_(deliveries) {}

  /// Stores `job` in the queue of `endpoint`, unless the idempotency key was used before. Returns when the job is
  /// durable: only from then on may its id be sent to the caller.
  InsertResult submit(JobSpec job, const Endpoint& endpoint, const std::optional<Idempotency>& idempotency);

  /// Returns the result of submit() for an idempotency key that was used before, or no value for a new key. Called
  /// before the filters judge a job.
  std::optional<IdempotencyRecord> findByIdempotencyKey(const Endpoint& endpoint, const std::string& apiKeyId,
                                                        const Idempotency& idempotency);

  /// The way by which a waiting caller reads its job.
  enum class CallerReads {
    wait,  ///< by the returned wait alone
    job    ///< by other functions too, as a stream does
  };
  struct AwaitedSubmission {
    InsertResult inserted;
    std::unique_ptr<JobWait> wait;  ///< null if a KeyConflict prevented the insertion
    bool isDurable = true;  ///< false: the id may be sent to the caller only after wait->poll() has returned a job
  };
  /// Stores the job as submit() does, and begins a wait of `wait` milliseconds for its end, or for the end of the first
  /// job with a repeated idempotency key. An idle worker gets the job before its insert (core/jobs/deferred_insert.h),
  /// or in the same step of the storage; otherwise the first poll of the wait, or its end, notifies the dispatcher.
  /// A caller that reads the job by other means than the returned wait submits with CallerReads::job: the storage has
  /// the job when the call returns.
  AwaitedSubmission submitAwaited(JobSpec job, const Endpoint& endpoint, const std::optional<Idempotency>& idempotency,
                                  Millis wait, CallerReads reads = CallerReads::wait);

  /// Returns the job, with the bodies of `extent` if `room` has room for them; null: in any case. The one way by which
  /// callers get outputs.
  FoundJob find(const JobKey& key, OutputRoom* room, JobExtent extent = JobExtent::result);

  /// Returns the number of jobs to be claimed before this job, counted up to `most`, or no value if the job is not
  /// queued.
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most);

  /// Begins a wait of `wait` milliseconds for the end of the job.
  std::unique_ptr<JobWait> await(const JobKey& key, Millis wait);

  /// Returns the next chunks as they are now, or no value if the job is absent. Never waits.
  std::optional<ChunkPage> chunks(const ChunkAsk& ask);

  /// Returns a page with the state and the attempt of the job and without chunks, or no value if the job is absent.
  /// Reads no body and hands out no chunk.
  std::optional<ChunkPage> presentState(const JobKey& key);

  /// Begins a wait for the next chunks, of `ask.wait` milliseconds for the first chunk.
  std::unique_ptr<ChunkWait> awaitChunks(const ChunkAsk& ask);

  /// Begins to follow the chunks of a job, from the position `from` on.
  std::unique_ptr<ChunkFeed> followChunks(const JobKey& key, const ChunkPosition& from = {});

  /// Returns the notifier of the waits for jobs, whose clock decides about their ends.
  CompletionNotifier& completions() const noexcept { return completions_; }

  struct Log {
    LogPart part;
    JobState state = JobState::inQueue;  ///< read before the lines, so the log of an ended job is complete
  };
  /// Returns the lines logged by the job's handler behind `from`, of `maxBytes` bytes or a single one, or no value if
  /// the job is absent.
  std::optional<Log> log(const JobKey& key, const LogPosition& from, std::size_t maxBytes);

  /// Sets the lifespan of a job for `/status?ttl=` (JobStore::setTtl). Returns the new expiry, or no value if the job
  /// is absent.
  std::optional<Instant> setTtl(const JobKey& key, Millis ttl);

  /// Returns one page of an endpoint's jobs, newest first.
  JobPage list(const JobFilter& filter, const PageWindow& window);

  /// Cancels the job and wakes its waiters at once. The calling code has to stop the handler of Cancelled::lease.
  CancelResult cancel(const JobKey& key);

  /// Puts a FAILED or TIMED_OUT job at the end of the queue (/retry).
  RequeueResult retry(const JobKey& key, const Endpoint& endpoint);

  /// Removes the queued jobs of the endpoint and wakes their waiters. Returns the number of removed jobs.
  std::size_t purge(const EndpointId& endpoint);

  /// Returns the numbers of the endpoint's jobs by state.
  EndpointCounts counts(const EndpointId& endpoint);

  /// Returns the number and the oldest age of the webhooks that the endpoint owes.
  OwedDeliveries owed(const EndpointId& endpoint);

 private:
  /// Stores the job. Wakes the dispatcher if no answer came, because the job may be in the queue.
  InsertResult insert(JobSpec job, const Endpoint& endpoint, const std::optional<Idempotency>& idempotency);

  Storage& storage_;
  QueueSignal& queueSignal_;
  Claimer& claimer_;
  CompletionNotifier& completions_;
  DeliveryNotifier& deliveries_;
  CallIds callIds_;
};

}  // namespace jobq

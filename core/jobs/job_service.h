// The operations of callers on jobs: submission, reading, waiting, cancelling. The service calls the storage, notifies
// the dispatcher, and wakes waiting callers. The reports of workers are in core/jobs/run_reports.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/endpoints/endpoint.h"
#include "core/jobs/completion_notifier.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class DeliveryNotifier;
class QueueSignal;

/// Any thread may call the functions; each throws StorageError if the storage fails.
class JobService {
 public:
  /// The references outlive the object.
  JobService(Storage& storage, QueueSignal& queueSignal, CompletionNotifier& completions, DeliveryNotifier& deliveries)
      : storage_(storage), queueSignal_(queueSignal), completions_(completions), deliveries_(deliveries) {}

  /// Stores `job` in the queue of `endpoint`, unless the idempotency key was used before. Returns when the job is
  /// durable: only from then on may its id be sent to the caller.
  InsertResult submit(JobSpec job, const Endpoint& endpoint, const std::optional<Idempotency>& idempotency);

  /// Returns the result of submit() for an idempotency key that was used before, or no value for a new key. Called
  /// before the filters judge a job.
  std::optional<IdempotencyRecord> findByIdempotencyKey(const Endpoint& endpoint, const std::string& apiKeyId,
                                                        const Idempotency& idempotency);

  struct Waited {
    InsertResult inserted;
    std::optional<Job> job;  ///< empty if the job is absent, or if a KeyConflict prevented the insertion
  };
  /// Calls submit(), then waits for the end of the job (of the first job, for a repeated idempotency key) and returns
  /// the job as it is at its end or after `wait` milliseconds. `durable` is called in between, when the job's body is
  /// no longer in memory. A stop on the token of `gone` ends the wait early.
  Waited submitAndAwait(JobSpec job, const Endpoint& endpoint, const std::optional<Idempotency>& idempotency,
                        Millis wait, const std::function<void(const InsertResult&)>& durable,
                        const DisconnectSignal& gone);

  /// Returns the job, or no value if the job is absent.
  std::optional<Job> find(const JobKey& key);

  /// Returns the number of jobs to be claimed before this job, counted up to `most`, or no value if the job is not
  /// queued.
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most);

  /// Returns the job as it is at its end or after `wait` milliseconds, or no value if the job is absent. A stop on the
  /// token of `gone` ends the wait early.
  std::optional<Job> await(const JobKey& key, Millis wait, const DisconnectSignal& gone);

  struct ChunkAsk {
    JobKey key;
    /// Number of the first chunk to be read (ChunkStore::read). Without an offset chunks are handed out
    /// (ChunkStore::consume).
    std::optional<std::uint64_t> offset{};
    std::size_t maxBytes = 0;  ///< bytes of outputs and metrics in one page
    Millis wait{0};            ///< how long to wait for the first chunk
  };
  /// Returns the next chunks as they are now, or no value if the job is absent. Never waits.
  std::optional<ChunkPage> chunks(const ChunkAsk& ask);

  struct Stream {
    std::optional<ChunkPage> page;  ///< empty if the job is absent
    bool hasWaited = false;
  };
  /// Returns the next chunks as soon as a chunk exists, the job has ended, or `ask.wait` has passed. While the job
  /// runs, the chunks of 100 ms (more with many open streams) or of 1 MB are gathered: clients ask again at once, and
  /// an answer for each chunk would cause a request for each chunk. Hands out no chunk if the client has left
  /// meanwhile.
  Stream awaitChunks(const ChunkAsk& ask, const DisconnectSignal& gone);

  struct Log {
    std::vector<LogLine> lines;          ///< the last kMaxLogLines, oldest first
    JobState state = JobState::inQueue;  ///< read before the lines, so the log of an ended job is complete
  };
  /// Returns the lines logged by the job's handler, or no value if the job is absent.
  std::optional<Log> log(const JobKey& key);

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
  Millis gatherTime() const;
  std::optional<Job> readUntilEnd(const JobKey& key, CompletionNotifier::Waiter& waiter, bool more, Instant deadline,
                                  const DisconnectSignal& gone);

  Storage& storage_;
  QueueSignal& queueSignal_;
  CompletionNotifier& completions_;
  DeliveryNotifier& deliveries_;
  CallIds callIds_;
};

}  // namespace jobq

// Room 5 (registry) and room 10 (sign-off): the verbs of a job, for whoever calls them. Knows the storage, rings the
// bell for the dispatcher, wakes the callers who wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/jobs/completion_notifier.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class QueueSignal;

/// Any thread. StorageError passes through every verb.
/// A failed job keeps so many bytes of its error, which is cut and marked beyond.
inline constexpr std::size_t kMaxErrorBytes = 64UL << 10;

class JobService {
 public:
  /// `owed` is called after a step that may have left a webhook to deliver; cheap, and throws nothing.
  JobService(Storage& storage, QueueSignal& queueSignal, CompletionNotifier& completions,
             std::function<void()> owed = {});

  /// Puts the job in line, unless the caller's promise says that it is there already. Returns when that is durable:
  /// only then may a caller be told its id.
  InsertResult submit(JobSpec job, const Endpoint& endpoint, const std::optional<Idempotency>& idempotency);

  /// What submit() would answer to a promise that was made before: who judges jobs before they are submitted asks
  /// first.
  std::optional<IdempotencyRecord> findByIdempotencyKey(const Endpoint& endpoint, const std::string& apiKeyId,
                                                        const Idempotency& idempotency);

  struct Waited {
    InsertResult inserted;
    std::optional<Job> job;  ///< nothing when it is absent, or nothing was inserted because of KeyConflict
  };
  /// submit(), then the job (the first one's, for a repeated promise) as it is when it ends or `wait` has passed.
  /// `durable` is called in between: the job's body is no longer in memory. `gone` ends the wait early.
  Waited submitAndAwait(JobSpec job, const Endpoint& endpoint, const std::optional<Idempotency>& idempotency,
                        Millis wait, const std::function<void(const InsertResult&)>& durable,
                        const DisconnectSignal& gone);

  std::optional<Job> find(const JobKey& key);

  /// How many jobs are claimed before this one, counted up to `most`; nothing when it does not wait.
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most);

  /// The job as it is when it ends or `wait` has passed; nothing when it is absent.
  std::optional<Job> await(const JobKey& key, Millis wait, const DisconnectSignal& gone);

  struct ChunkAsk {
    JobKey key;
    std::optional<std::uint64_t> offset{};  ///< reads from there on (ChunkStore::read); else hands out (take)
    std::size_t maxBytes = 0;
    Millis wait{0};  ///< how long the first chunk is waited for
  };
  /// The next chunks as they are now. Nothing when the job is absent.
  std::optional<ChunkPage> chunks(const ChunkAsk& ask);

  struct Stream {
    std::optional<ChunkPage> page;  ///< nothing when the job is absent
    bool hasWaited = false;
  };
  /// The next chunks once there is one, the job has ended, or `ask.wait` has passed. While the job runs, those of 100
  /// ms are gathered, of longer where many streams are open, or until there is 1 MB: clients ask again at once, and an
  /// answer for each chunk would be a request for each chunk. Hands out nothing when the client has gone meanwhile.
  Stream awaitChunks(const ChunkAsk& ask, const DisconnectSignal& gone);

  struct Log {
    std::vector<LogLine> lines;          ///< the last kMaxLogLines, oldest first
    JobState state = JobState::inQueue;  ///< read before the lines: those of an ended job are all there
  };
  /// Returns the lines that the job's handler has logged, or nothing if the job is absent.
  std::optional<Log> log(const JobKey& key);

  /// `/status?ttl=`: JobStore::setTtl.
  std::optional<Instant> setTtl(const JobKey& key, Millis ttl);

  JobPage list(const JobFilter& filter, const PageWindow& window);

  /// The job's waiters are answered at once; whoever runs it has to be told by the caller (Cancelled::lease).
  CancelResult cancel(const JobKey& key);

  /// /retry: to the end of the line.
  RequeueResult retry(const JobKey& key, const Endpoint& endpoint);

  /// Removes the jobs that wait, and answers who waits for them. Returns how many.
  std::size_t purge(const EndpointId& endpoint);

  EndpointCounts counts(const EndpointId& endpoint);

  /// Returns the webhooks that the endpoint owes; nothing when the storage cannot tell (OutboxStore::owed).
  OwedDeliveries owed(const EndpointId& endpoint);

  /// Adds chunks to a running job and wakes who streams it.
  ReportResult append(const LeaseRef& lease, std::vector<Chunk> chunks);

  /// Records how a run ended and wakes the job's waiters. Stale: somebody else has ended this attempt.
  ReportResult finish(const LeaseRef& lease, Outcome outcome, bool owesWebhook);

  /// Jobs that did not run to their end go back in line unharmed.
  void release(const std::vector<LeaseRef>& leases, const EndpointId& endpoint);

  /// Tells everyone concerned what a sweep did, but the workers (SweepResult::stopped).
  void announce(const SweepResult& swept);

 private:
  Millis gatherTime() const;
  std::optional<Job> lookUntilEnd(const JobKey& key, CompletionNotifier::Waiter& waiter, bool more, Instant deadline,
                                  const DisconnectSignal& gone);

  Storage& storage_;
  QueueSignal& queueSignal_;
  CompletionNotifier& completions_;
  const std::function<void()> owed_;
};

}  // namespace jobq

// Storage, face 1: jobs as their callers see them. The general rules are in storage.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/time.h"

namespace jobq {

/// A caller's promise that two requests are the same (core/decisions/jobs.md: 24 hours, per endpoint and API key).
struct Idempotency {
  std::string key;
  std::string bodyHash;  ///< equal hashes: the same request
};
inline constexpr Millis kIdempotencyLife{86'400'000};

struct Inserted {};
/// The key was used for the same body before: nothing was inserted, this is the first job's id (it may have expired).
struct Duplicate {
  JobId id;
};
/// The key was used for another body before: nothing was inserted.
struct KeyConflict {};
using InsertResult = std::variant<Inserted, Duplicate, KeyConflict>;
using IdempotencyRecord = std::variant<Duplicate, KeyConflict>;

struct Cancelled {
  bool wasRunning = false;
  LeaseRef lease;  ///< the attempt that ran, when wasRunning: its handler has to be told
};
struct Requeued {};
/// The job is in a state that the verb does not apply to; nothing changed.
struct WrongState {
  JobState state;
};
struct NotFound {};
using CancelResult = std::variant<Cancelled, WrongState, NotFound>;
using RequeueResult = std::variant<Requeued, WrongState, NotFound>;

struct JobFilter {
  EndpointId endpoint;
  std::optional<JobState> state;
};
/// Where a page begins. A cursor costs the same at any depth, an offset as much as the jobs that it passes over.
struct PageWindow {
  std::size_t offset = 0;
  std::size_t limit = 50;
  std::uint64_t cursor = 0;  ///< JobPage::next of the page before; 0 for the newest job
};
struct JobPage {
  std::vector<Job> jobs;   ///< newest submission first; without output and progress, the error cut by listedError()
  std::size_t total = 0;   ///< jobs that match the filter, wherever the page begins
  std::uint64_t next = 0;  ///< cursor of the next page; 0 when this was the last one
};

/// A list has so many bytes of each job's error.
inline constexpr std::size_t kListedErrorBytes = 1'024;

/// Returns the error as lists have it: whole, or cut between characters and ended by "...".
inline std::string listedError(std::string_view error) {
  if (error.size() <= kListedErrorBytes) return std::string(error);
  std::size_t end = kListedErrorBytes;
  while (end > 0 && (static_cast<unsigned char>(error[end]) & 0xc0) == 0x80) --end;
  return std::string(error.substr(0, end)) + "...";
}

/// inQueue, inProgress: now. completed, failed (TIMED_OUT included), retried (losses and /retry): since the endpoint's
/// first job, written in the step that causes them, and not lowered by expiry.
struct EndpointCounts {
  std::uint64_t inQueue = 0;
  std::uint64_t inQueueLow = 0;  ///< those of inQueue that are lowPriority
  std::uint64_t inProgress = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t retried = 0;
  std::optional<Instant> headQueuedAt{};  ///< of the normal job that is claimed next; nothing when none waits
};

class JOBQ_VISIBLE JobStore : public abi::Versioned {
 public:
  virtual ~JobStore() = default;

  /// Puts a new job in line, IN_QUEUE, attempt 0. The rank is asked of `policy` inside the step. The idempotency record
  /// is written in the same step and outlives the job. A job id that exists already is a StorageError, also that
  /// of an expired job until a sweep has freed its space: a late report of that job must not meet another one.
  [[nodiscard]] virtual InsertResult insert(JobSpec job, const QueuePolicy& policy,
                                            const std::optional<Idempotency>& idempotency) = 0;

  /// What insert() would answer to this promise without inserting anything; nothing: no such promise, as it stands now.
  /// Asked where a job is judged before it is inserted: who repeats a call is not judged again.
  [[nodiscard]] virtual std::optional<IdempotencyRecord> findByIdempotencyKey(std::string_view endpoint,
                                                                              std::string_view apiKeyId,
                                                                              const Idempotency& idempotency) = 0;

  [[nodiscard]] virtual std::optional<Job> find(const JobKey& key) = 0;

  /// Those of `keys` that are terminal, in any order, in one question: waiters are not polled one by one.
  [[nodiscard]] virtual std::vector<Job> findFinished(std::span<const JobKey> keys) = 0;

  /// IN_QUEUE or IN_PROGRESS becomes CANCELLED.
  [[nodiscard]] virtual CancelResult cancel(const JobKey& key) = 0;

  /// /retry: FAILED or TIMED_OUT goes to the end of the line with a new queuedAt and rank; losses, output, error,
  /// progress, chunks, startedAt, finishedAt and workerId are reset; attempt and retries grow; the expiry is
  /// submission + ttl again.
  [[nodiscard]] virtual RequeueResult requeue(const JobKey& key, const QueuePolicy& policy) = 0;

  /// Removes every job that is IN_QUEUE at the endpoint; returns how many. No webhook is owed. A long line may be
  /// removed in several steps, from its head: other verbs go between, and after a failure the rest is still in line.
  virtual std::size_t purgeQueued(std::string_view endpoint) = 0;

  /// The job expires at now + max(ttl, kTtlFloor) instead, at most kTtlCeiling after its submission; completion and
  /// retry do not change that again. Returns the new expiry, or nothing when the job is absent.
  virtual std::optional<Instant> setTtl(const JobKey& key, Millis ttl) = 0;

  [[nodiscard]] virtual JobPage list(const JobFilter& filter, const PageWindow& window) = 0;

  /// Cheap enough for every /health and every scaling decision: does not grow with the queue's depth.
  [[nodiscard]] virtual EndpointCounts counts(std::string_view endpoint) = 0;

  /// Removes up to `batch` records of an endpoint that is being deleted: its jobs, in any state, with their chunks and
  /// logs; when none is left, its idempotency records, then its group records. Returns how many there were; fewer than
  /// `batch` means that nothing of the endpoint is left, its counters included.
  virtual std::size_t remove(std::string_view endpoint, std::size_t batch) = 0;
};

inline constexpr Millis kTtlFloor{1'000};          ///< 1 s from now
inline constexpr Millis kTtlCeiling{604'800'000};  ///< 7 days from the submission

}  // namespace jobq

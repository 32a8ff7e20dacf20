// Store of jobs, as callers see jobs. The rules for every store (threads, exceptions, absent jobs) are in storage.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/capabilities.h"
#include "jobq/error.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

/// An idempotency key of a submission. Two submissions with the same key, endpoint and API key are the same submission
/// for 24 hours (core/decisions/jobs.md).
struct Idempotency {
  std::string key;
  std::string bodyHash;  ///< hash of the request's body; equal hashes mean the same request
};
/// Life of an idempotency record, 24 hours, counted from the insert.
inline constexpr Millis kIdempotencyLife{86'400'000};

/// A new job waits in the queue.
struct Queued {};
/// The first attempt of a new job, with the number 1, has begun before the storage has the job.
struct Begun {
  WorkerId worker;
  Holder holder;                     ///< the life of the node of `worker`
  Millis age{0};                     ///< time since the attempt began, at least 0
  const Outcome* outcome = nullptr;  ///< the end of the attempt; null while the attempt runs
};
/// Where a new job is when the storage gets the job.
using Start = std::variant<Queued, Begun>;

/// Planned: the step happens, and stores the record, only if the record still has the version.
struct OnlyIf {
  Record record;
  std::uint64_t version = 0;
};

/// Conditions of an insert.
struct InsertTerms {
  std::optional<Idempotency> idempotency{};
  Start start{};                   ///< with Begun there is no idempotency key
  std::optional<OnlyIf> onlyIf{};  ///< Planned: every storage refuses the value (planned.h)
};

/// The store has taken the job, by this call or by an earlier call.
struct Inserted {};
/// The key was used before with the same body. The call inserted no job; `id` is the first job, possibly expired.
struct Duplicate {
  JobId id;
};
/// The key was used before with another body. The call inserted no job.
struct KeyConflict {};
using InsertResult = std::variant<Inserted, Duplicate, KeyConflict>;
using IdempotencyRecord = std::variant<Duplicate, KeyConflict>;

/// The job is CANCELLED, by this call or by an earlier call.
struct Cancelled {
  LeaseRef lease;  ///< the last attempt of the job; the caller stops its handler, if the handler runs
};
/// The failed attempt was followed by a retry, by this call or by an earlier call.
struct Requeued {};
/// The operation does not apply to the present state of the job; nothing changed.
struct WrongState {
  JobState state;
};
/// The job is absent: unknown, expired, or of another endpoint.
struct NotFound {};
using CancelResult = std::variant<Cancelled, WrongState, NotFound>;
using RequeueResult = std::variant<Requeued, WrongState, NotFound>;

/// Selection of jobs for list(): all jobs of an endpoint, or its jobs with the other values.
struct JobFilter {
  EndpointId endpoint;
  std::optional<JobState> state{};
  std::string apiKeyId{};  ///< only jobs that this API key submitted; empty for any
  std::string idPrefix{};  ///< only jobs whose id begins so; empty for any

  /// Returns whether a job of the API key `key` with the id matches, in any state.
  bool matches(std::string_view id, std::string_view key) const {
    return (apiKeyId.empty() || key == apiKeyId) && id.starts_with(idPrefix);
  }
};
/// Jobs of another API key or prefix that list() passes over for one page before the page may end early.
inline constexpr std::size_t kMostPassedOver = 10'000;

/// Begin and length of a page. A cursor costs the same at any depth; an offset costs as much as the jobs that are
/// skipped.
struct PageWindow {
  std::size_t offset = 0;    ///< jobs of the endpoint and the state to skip, with any API key and id
  std::size_t limit = 50;    ///< greatest number of jobs in the page
  std::uint64_t cursor = 0;  ///< JobPage::next of the preceding page; 0 for the newest job
};
/// A page of a list of jobs.
struct JobPage {
  std::vector<Job> jobs;   ///< newest submission first; without bodies, the error cut by listedError()
  std::size_t total = 0;   ///< jobs of the endpoint and the state, on all pages, with any API key and id
  std::uint64_t next = 0;  ///< cursor of the next page; 0 after the last page
};

/// Greatest length of an error in a list, in bytes, without the final "...".
inline constexpr std::size_t kListedErrorBytes = 1'024;

/// Returns an error as lists show errors: whole, or cut between two characters of UTF-8 after at most kListedErrorBytes
/// and ended by "...".
inline std::string listedError(std::string_view error) {
  if (error.size() <= kListedErrorBytes) return std::string(error);
  std::size_t end = kListedErrorBytes;
  while (end > 0 && (static_cast<unsigned char>(error[end]) & 0xc0) == 0x80) --end;
  return std::string(error.substr(0, end)) + "...";
}

/// Leaves out the bodies of `job`.
inline void dropBodies(Job& job) {
  for (std::string* body : {&job.output, &job.progress, &job.input}) std::string().swap(*body);  // frees the memory
}

/// Sets Job::bodyBytes, and leaves out the bodies of `job` if they have more than `mostBytes` bytes.
inline void boundBodies(Job& job, std::uint64_t mostBytes) {
  job.bodyBytes = job.output.size() + job.progress.size() + job.input.size();
  if (job.bodyBytes > mostBytes) dropBodies(job);
}

/// Bodies that JobStore::find() reads.
enum class JobExtent {
  result,  ///< output and progress
  input    ///< output, progress and input
};

/// Present state of a job, for the callers that wait for a change.
struct JobSummary {
  JobState state = JobState::inQueue;
  std::uint32_t attempt = 0;
  std::uint64_t chunks = 0;  ///< number of chunks of the attempt
  bool operator==(const JobSummary&) const = default;
};

/// Counters of an endpoint. inQueue and inProgress are present numbers. completed, failed (with TIMED_OUT) and retried
/// (losses and retries) count from the endpoint's first job on, change in the step that causes the change, and are not
/// lowered by expiry.
struct EndpointCounts {
  std::uint64_t inQueue = 0;
  std::uint64_t inQueueLow = 0;  ///< jobs of inQueue with lowPriority
  std::uint64_t inProgress = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t retried = 0;
  std::optional<Millis>
      headWait{};  ///< time since queuedAt of the normal job that is claimed next; empty if none waits
};

/// Greatest input in bytes with which JobStore::insertLater() does not block.
inline constexpr std::size_t kLaterInput = 64UL << 10;

/// Receives the result of one JobStore::insertLater(). The storage calls exactly one of the two functions, once, on any
/// thread, perhaps before insertLater() returns, and destroys the object afterwards. Neither function may block, call
/// the storage, or throw.
class JOBQ_VISIBLE InsertReceiver {
 public:
  virtual ~InsertReceiver() = default;

  /// The insert has ended as JobStore::insert() returns.
  virtual void inserted(InsertResult result) noexcept = 0;
  /// The insert has failed with an exception that JobStore::insert() throws.
  virtual void failed(std::exception_ptr error) noexcept = 0;
};

/// No bound on the bytes of a result.
inline constexpr std::uint64_t kAnyBytes = std::numeric_limits<std::uint64_t>::max();

inline constexpr Millis kTtlFloor{1'000};          ///< 1 s from now
inline constexpr Millis kTtlCeiling{604'800'000};  ///< 7 days from the submission

/// Returns the expiry of a job for JobStore::setTtl() at `now`: now + ttl, at most kTtlCeiling after the submission, or
/// at most the `present` expiry of a job that lives longer; but at least kTtlFloor from now.
inline Instant expiryByTtl(Instant submittedAt, Instant present, Instant now, Millis ttl) {
  const Instant latest = std::max(submittedAt + kTtlCeiling, present);
  return std::max(now + kTtlFloor, std::min(now + std::min(ttl, kTtlCeiling), latest));
}

/// Operations on jobs for the callers of the API. The storage owns the store.
class JOBQ_VISIBLE JobStore : public abi::Versioned {
 public:
  virtual ~JobStore() = default;

  /// Puts a new job into the queue, IN_QUEUE with attempt 0, unless terms.start is Begun. The store asks `policy` for
  /// the rank inside the step, and writes the idempotency record in the same step; the record outlives the job. Returns
  /// Inserted; or KeyConflict if the idempotency key is known with another hash; or Duplicate if the key is known with
  /// the same hash for another id. Throws StorageError also if a different job has the id of `job`. The id of an
  /// expired job stays taken until a sweep has freed the job's space: a late report of the expired job must not match a
  /// new job. The store may take the content of `job`; a call that throws OutcomeUnknown leaves `job` unchanged.
  ///
  /// Repeatable: returns Inserted and changes nothing if the idempotency key is known with the same hash for the id of
  /// `job`, or if the store has a job with the same id, endpoint, API key and input, in any state. The idempotency key
  /// is judged first.
  ///
  /// Begun needs Capability::insertBegun, which a storage of several processes, or one that may throw OutcomeUnknown,
  /// does not have. The job is afterwards as if the insert and a claim for Begun::worker had happened Begun::age ago,
  /// although other jobs may wait: its submission, its time in the queue and its start are that moment. Without an
  /// outcome the job is IN_PROGRESS. With an outcome the job has ended with this call, as by LeaseStore::finish(), and
  /// owes its webhook. LeaseStore::claimed() never names the job. The store only reads `job`: other threads may read
  /// the job during the call. As durable as LeaseStore::finish(). Throws StorageError also if a job has the id already,
  /// if the ttl of the job is over, and without an outcome if the life of Begun::holder has ended.
  [[nodiscard]] virtual InsertResult insert(JobSpec&& job, const QueuePolicy& policy,
                                            const InsertTerms& terms = {}) = 0;

  /// Does what insert() does for Queued, and returns before the step: one thread inserts many jobs, and the storage
  /// takes them together. Needs Capability::insertLater, which a storage that may throw OutcomeUnknown does not have.
  /// `receiver` gets the result when the job is as durable as after insert(). Blocks for microseconds if the input has
  /// at most kLaterInput bytes, and as insert() does otherwise. `policy` lives as long as `receiver`. Throws
  /// std::bad_alloc, and inserts nothing then; every other error of the step goes to `receiver`.
  virtual void insertLater(JobSpec /*job*/, const QueuePolicy& /*policy*/, std::optional<Idempotency> /*idempotency*/,
                           std::unique_ptr<InsertReceiver> /*receiver*/) {
    throwLacking("JobStore::insertLater()");
  }

  /// Returns the answer that insert() of a new id would give for this idempotency key now, or an empty optional if the
  /// key is unknown for the endpoint and the API key. Callers ask before the filters judge a job, so that filters do
  /// not judge a repeated submission.
  [[nodiscard]] virtual std::optional<IdempotencyRecord> findByIdempotencyKey(std::string_view endpoint,
                                                                              std::string_view apiKeyId,
                                                                              const Idempotency& idempotency) = 0;

  /// Returns the job with the bodies of `extent`, or an empty optional if the job is absent. All bodies are left out if
  /// they have more than `mostBytes` bytes together: the caller provides for the memory of a large output before the
  /// output is read. A storage reads at most 1 MB of bodies that the result leaves out.
  [[nodiscard]] virtual std::optional<Job> find(const JobKey& key, std::uint64_t mostBytes = kAnyBytes,
                                                JobExtent extent = JobExtent::result) = 0;

  /// Returns a summary of each job, in the order of `keys`, without reading its bodies; an empty optional for an absent
  /// job. A node asks for all jobs at once that its callers wait for.
  [[nodiscard]] virtual std::vector<std::optional<JobSummary>> summaries(std::span<const JobKey> keys) = 0;

  /// Changes a job from IN_QUEUE or IN_PROGRESS to CANCELLED, and writes the owed webhook, if any. Returns Cancelled,
  /// WrongState for a job with another terminal state, or NotFound. Repeatable: a CANCELLED job stays unchanged.
  [[nodiscard]] virtual CancelResult cancel(const JobKey& key) = 0;

  /// Puts a FAILED or TIMED_OUT job at the end of the queue, for `/retry`, with a new queuedAt and a new rank. Resets
  /// losses, output, error, progress, chunks, startedAt, finishedAt and workerId; raises attempt and retries; the
  /// expiry is that of expiryAfterRetry() (transitions.h). The caller has read the job as FAILED or TIMED_OUT under the
  /// attempt `failedAttempt`. Returns Requeued; WrongState if the job has another state under this attempt, or a lower
  /// attempt; or NotFound. Repeatable: returns Requeued and changes nothing if the job has a higher attempt, because a
  /// job leaves FAILED and TIMED_OUT by a retry only.
  [[nodiscard]] virtual RequeueResult requeue(const JobKey& key, std::uint32_t failedAttempt,
                                              const QueuePolicy& policy) = 0;

  /// Removes every job that is IN_QUEUE at the endpoint, without webhooks. Returns the number of removed jobs. The
  /// store may remove a long queue in several steps, from the head on: other operations run in between, and after a
  /// failure the rest of the queue is still there. Repeatable, but for the number: a repeated call removes and counts
  /// what is queued then.
  virtual std::size_t purgeQueued(std::string_view endpoint) = 0;

  /// Moves the expiry of the job to expiryByTtl(). Completion and retry do not change that expiry again. Returns the
  /// new expiry, or an empty optional if the job is absent. Repeatable: a repeated call sets the expiry again.
  virtual std::optional<Instant> setTtl(const JobKey& key, Millis ttl) = 0;

  /// Returns one page of the jobs that match `filter`. A page of a filter with an API key or a prefix may have fewer
  /// jobs than its limit although more match: the store passes over about kMostPassedOver other jobs, and
  /// JobPage::next leads on from there.
  [[nodiscard]] virtual JobPage list(const JobFilter& filter, const PageWindow& window) = 0;

  /// Returns the counters of the endpoint. The time of the call does not grow with the length of the queue: each
  /// /health and each scaling decision calls the function.
  [[nodiscard]] virtual EndpointCounts counts(std::string_view endpoint) = 0;

  /// Returns the counters of each endpoint that has had a job since its last remove(), as counts() does. The result may
  /// name further endpoints, which have had no job since. The time of the call grows with the number of endpoints, not
  /// with the number of jobs.
  [[nodiscard]] virtual std::map<EndpointId, EndpointCounts> allCounts() = 0;

  /// Removes up to `batch` records of an endpoint under deletion: first jobs in any state with their chunks and logs,
  /// then idempotency records, then group records. Returns the number of removed records. A number below `batch` means
  /// that the store has no record of the endpoint any more, and its counters are gone too. Repeatable, but for the
  /// number: a repeated call removes and counts further records.
  virtual std::size_t remove(std::string_view endpoint, std::size_t batch) = 0;
};

}  // namespace jobq

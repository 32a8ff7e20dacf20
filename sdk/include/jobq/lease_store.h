// Store of leases: the operations of a worker (claim, finish, report), and the treatment of jobs of failed workers. A
// lease is the right of a holder to run an attempt of a job, and is valid as long as the holder's life (node_store.h).
// A node uses these operations for its threads and for remote workers. The rules for every store are in storage.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/call_id.h"
#include "jobq/error.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// Idle workers of one endpoint. A claim gives each worker at most one job.
struct ClaimWant {
  EndpointId endpoint;
  std::vector<WorkerId> workers;
};

/// A job that is IN_PROGRESS now. The store has recorded the claim before the call returns.
struct ClaimedJob {
  LeaseRef lease;
  EndpointId endpoint;
  WorkerId worker;
  std::string input;
  std::string webhook;
  std::string s3Config;  ///< sealed, equal to the bytes of the insert
  JobPolicy policy;
  Instant submittedAt{};
  Instant startedAt{};
  Millis runsFor{0};           ///< time from the answer to the end of the attempt: executionTimeout, or the time to
                               ///< the expiry if shorter; negative if the time is over
  std::uint64_t logLines = 0;  ///< number of log lines of all earlier attempts, also of lines dropped since
};

/// An input of at most so many bytes has always room (LeaseStore::claimWithin()).
inline constexpr std::uint64_t kSmallInput = 16UL << 10;

/// Most bytes of the inputs of a claim inside another step: Storage::insertAndClaim(), Storage::finishAndClaim() and
/// finishUnsynced(). A job with a larger input is left to claimWithin(), since ABI minor 6.
inline constexpr std::uint64_t kMostFusedInput = 256UL << 10;

/// The bytes that are left for the inputs of one claim. One thread.
class InputBound {
 public:
  explicit InputBound(std::uint64_t mostBytes) : left_(mostBytes) {}

  /// Adds the input of a job of `endpoint`, of `bytes` bytes, to the claim. Returns false, and notes the endpoint, if
  /// there is no room for the input. The claim takes no further job of that endpoint.
  bool addInput(const EndpointId& endpoint, std::uint64_t bytes) {
    const bool hasRoom = bytes <= left_ || bytes <= kSmallInput;
    if (hasRoom) left_ -= std::min(bytes, left_);
    if (!hasRoom) refused_.push_back(endpoint);
    return hasRoom;
  }
  /// Returns the bytes that are left.
  std::uint64_t left() const noexcept { return left_; }
  /// Returns the endpoints without room for an input, and forgets them.
  std::vector<EndpointId> extractRefused() noexcept { return std::exchange(refused_, {}); }

 private:
  std::uint64_t left_;
  std::vector<EndpointId> refused_;
};

/// Result of LeaseStore::claimWithin().
struct BoundedClaim {
  std::vector<ClaimedJob> jobs;
  std::vector<EndpointId> left;  ///< where a job is still queued, because there was no room for its input
};

/// Returns true if the worker is no part of the node that claimed its jobs, and goes on when the node ends: a place of
/// a remote worker, whose id is the id of the worker, a colon and a number.
inline bool outlivesNode(std::string_view worker) { return worker.find(':') != std::string_view::npos; }

/// Answer of states() about one attempt.
enum class LeaseState {
  held,       ///< the job is IN_PROGRESS under the attempt
  cancelled,  ///< the job is CANCELLED, and this was its last attempt
  timedOut,   ///< the job is TIMED_OUT, and this was its last attempt
  deleted,    ///< the job is absent
  takenOver   ///< the attempt has ended for any other reason: reported, returned to the queue, or lost
};

/// Answer to a report about an attempt.
enum class ReportResult {
  accepted,
  staleAttempt,  ///< the job is not IN_PROGRESS under this attempt, and the report does not repeat its end; the report
                 ///< changed nothing, and the worker drops its work
};

/// An attempt whose run has ended, for finishAll().
struct EndedAttempt {
  LeaseRef lease;
  Outcome outcome;
};

/// Result of LeaseStore::finishUnsynced() and Storage::finishAndClaim().
struct FinishedAndClaimed {
  ReportResult finished = ReportResult::accepted;
  std::vector<ClaimedJob> claimed;  ///< as LeaseStore::claim() returns them
};

/// An endpoint with queued jobs.
struct QueuedEndpoint {
  EndpointId endpoint;
  bool hasNormal = false;  ///< a queued job has no lowPriority
  bool operator==(const QueuedEndpoint&) const = default;
};

/// Result of one sweep, or of one call of lose().
struct SweepResult {
  std::vector<LeaseRef> stopped;       ///< attempts that ended while a worker ran them: expired, timed out or lost
  std::vector<JobKey> finished;        ///< jobs that became FAILED or TIMED_OUT; their waiting callers need an answer
  std::vector<JobKey> expired;         ///< jobs deleted from the queue; their waiting callers need an answer
  std::vector<EndpointId> requeuedAt;  ///< endpoints (each once) with a job that went back to the queue
  std::size_t removed = 0;             ///< expired jobs whose space was freed
  bool more = false;                   ///< a bound was reached: the caller sweeps again at once
};

/// Begin of the error of a TIMED_OUT job, also for handlers that end themselves for that reason.
inline constexpr std::string_view kOverTime = "the job ran longer than its execution timeout";

/// Returns the error of a TIMED_OUT job.
inline std::string overTimeError(Millis executionTimeout) {
  return std::string(kOverTime) + " of " + std::to_string(executionTimeout.count()) +
         " ms; raise policy.executionTimeout if the job needs longer";
}

/// Operations on running jobs. The storage owns the store.
class JOBQ_VISIBLE LeaseStore : public abi::Versioned {
 public:
  virtual ~LeaseStore() = default;

  /// Claims queued jobs in the order (lowPriority, rank, arrival) for all `wants` in one step, and raises the attempt
  /// of each by one. The order holds for the jobs of one call; on a shared storage calls of several nodes at once may
  /// pass each other. No two callers ever receive a job under the same attempt. Returns the claimed jobs, for each want
  /// in the order of its workers; an empty result means that no job waits, or that the life of `holder` has ended. A
  /// job that was deleted during the call, or whose input cannot be read, is left out; a later sweep() ends the latter
  /// job as FAILED with the reason, or returns the job to the queue if the input may be read later.
  /// `id` is the id of the call. After
  /// OutcomeUnknown the caller asks claimed() for the jobs until that call answers: until then the jobs run at no
  /// worker. Not repeatable: a second call with the same id claims further jobs.
  /// Unsynced: a loss of power may undo the claim, and a later claim then gives the job the same attempt. The attempt
  /// still fences workers inside the server, because they stopped with the machine. A remote worker may still run the
  /// former claim: the server accepts its report only while the same worker has the job again.
  [[nodiscard]] virtual std::vector<ClaimedJob> claim(std::span<const ClaimWant> wants, const Holder& holder,
                                                      CallId id) = 0;

  /// Returns the jobs that are IN_PROGRESS under the claim `id`, called with the same `wants`, in the order of claim()
  /// and with their present values. A job whose attempt has ended since the claim is left out. The storage makes sure
  /// that the step of an unanswered claim has happened, or never happens, before the call returns. Changes nothing.
  [[nodiscard]] virtual std::vector<ClaimedJob> claimed(std::span<const ClaimWant> wants, CallId id) = 0;

  /// Returns one state for each attempt, in the order of the arguments. Changes nothing.
  [[nodiscard]] virtual std::vector<LeaseState> states(std::span<const LeaseRef> leases) = 0;

  /// Returns the endpoints that have a queued job, each once, in any order. A node asks for jobs that arrived at other
  /// nodes. An endpoint whose last queued job has just expired may be among them. The time of the call grows with the
  /// number of endpoints, not with the number of jobs.
  [[nodiscard]] virtual std::vector<QueuedEndpoint> queuedEndpoints() = 0;

  /// Records the outcome of an attempt: the state COMPLETED or FAILED, the output and the error, finishedAt, the
  /// counter, the owed webhook, and, unless setTtl() has set it, the expiry min(submission + ttl, completion +
  /// retention). Discards the progress of the attempt, as any end of a run does. Returns accepted, or staleAttempt if
  /// the job is not IN_PROGRESS under the attempt. Repeatable: returns accepted and changes nothing if the job has
  /// ended under this attempt with the same state, error and output.
  [[nodiscard]] virtual ReportResult finish(const LeaseRef& lease, Outcome outcome) = 0;

  /// Sets the job's progress to `json`, JSON text. Returns staleAttempt if the job is not IN_PROGRESS under the
  /// attempt. Repeatable: the same progress replaces itself. Unsynced.
  [[nodiscard]] virtual ReportResult progress(const LeaseRef& lease, std::string json) = 0;

  /// Returns jobs to the queue unharmed: IN_QUEUE with the old position; the attempt grows, the losses do not; chunks
  /// and progress are discarded; the return does not count as retried. Skips stale leases. Returns the number of
  /// returned jobs. Repeatable, but for the number: a repeated call finds stale leases and counts only the jobs that it
  /// returns itself.
  virtual std::size_t release(std::span<const LeaseRef> leases) = 0;

  /// Does the periodic work of the store, at most `max` jobs for each step, in this order:
  ///  - Frees expired jobs; `stopped` names the jobs with a worker.
  ///  - Ends IN_PROGRESS jobs past their execution timeout as TIMED_OUT, with overTimeError().
  ///  - On a shared storage, ends the lives of nodes without a beat (node_store.h).
  ///  - Takes back jobs whose holder's life has ended. Losses and retries grow by one. The job is IN_QUEUE with the old
  ///  position, a grown attempt and without chunks and progress; or FAILED if losses reach
  ///    maxAttempts, with an error that says how often the worker was lost.
  ///  - Drops idempotency records, delivery records and logs that have outlived their time.
  ///
  /// A finish() of the same process that began before the sweep counts as earlier, also if the outcome is stored later:
  /// the sweep neither times out the job nor takes the job back.
  ///
  /// After OutcomeUnknown the lists are lost: a further call does the remaining work and names other jobs. The caller
  /// then asks states() about each attempt that it runs, reads each job that a client waits for, and treats all queues
  /// and owed webhooks as changed.
  [[nodiscard]] virtual SweepResult sweep(std::size_t max) = 0;

  /// Returns the number of jobs of the endpoint in front of the job in the present queue, counted up to `most`. The
  /// answer `most` may be a second old. Returns an empty optional if the job is absent or not IN_QUEUE.
  [[nodiscard]] virtual std::optional<std::size_t> ahead(const JobKey& key, std::size_t most) = 0;

  /// Since ABI minor 1. Takes jobs back whose worker was lost while the life of its node goes on: does now for the
  /// named attempts what sweep() does for the jobs of a life that has ended. Losses and retries grow by one, and so
  /// does `retried` of the endpoint. The job is IN_QUEUE with the old position, a grown attempt and without chunks and
  /// progress; or FAILED if losses reach maxAttempts, with the error that sweep() gives the job. Skips stale leases,
  /// and an attempt with a finish() of the same process that began before the call, also if the outcome is stored
  /// later. Returns `stopped`, `finished` and `requeuedAt` for the jobs that this call took back; `removed` is 0 and
  /// `more` is false.
  /// Repeatable, but for the lists: a repeated call finds stale leases and names no job. After OutcomeUnknown the lists
  /// are lost, and the caller does what sweep() says for that case.
  /// A storage of an older minor releases the jobs instead, as release() does: the loss is not counted, no job becomes
  /// FAILED, and the lists are empty, so the caller treats the queues of the jobs as changed.
  [[nodiscard]] SweepResult lose(std::span<const LeaseRef> leases) {
    return abiMinor() >= 1 ? doLose(leases) : LeaseStore::doLose(leases);
  }

  /// Since ABI minor 1. Makes `holder` the holder of the jobs that an ended life has left IN_PROGRESS at workers that
  /// outlive their node (outlivesNode()), unless a sweep() has taken them back. Called behind join(), before the next
  /// sweep. Returns the jobs as claim() does, without their inputs; an empty result if the life of `holder` has ended.
  /// A storage of an older minor, or one that several nodes share, may leave the jobs to sweep(). Repeatable, but for
  /// the result: a repeated call returns only the jobs that it gives to `holder` itself. Unsynced.
  [[nodiscard]] std::vector<ClaimedJob> adopt(const Holder& holder) {
    return abiMinor() >= 1 ? doAdopt(holder) : std::vector<ClaimedJob>();
  }

  /// Since ABI minor 2. Records the outcomes of several attempts, each as finish() does, in the order of `ends`: of two
  /// outcomes of one attempt the first counts. Returns one answer for each, in the same order. As durable as finish().
  /// A storage may do all of them in one step, or in several. If the call throws, any of the outcomes may be recorded,
  /// and a repeated call answers for these too. Repeatable, as finish() is. Counts from its begin as a finish() of each
  /// attempt, for sweep() and lose().
  /// A storage of an older minor records the outcomes one by one.
  [[nodiscard]] std::vector<ReportResult> finishAll(std::span<const EndedAttempt> ends) {
    return abiMinor() >= 2 ? doFinishAll(ends) : LeaseStore::doFinishAll(ends);
  }

  /// Since ABI minor 5. Does what Storage::finishAndClaim() does, for a job whose end nobody is told of now: the worker
  /// goes on with its next job without a wait for the disk. A `want` without workers claims nothing. The arguments are
  /// valid during the call.
  ///
  /// Unsynced. The storage makes the end durable before JobStore::find(), JobStore::list(), ChunkStore::read() or
  /// ChunkStore::consume() shows the end, before OutboxStore::claimDue() returns the owed webhook, and within about
  /// 5 ms; if the process dies before, with the next NodeStore::join(). Numbers and totals of jobs, lists of jobs in
  /// other states, JobStore::summaries(), LeaseStore::states(), OutboxStore::list() and backups may follow the end
  /// earlier. A loss of power before undoes the whole step: the attempt is as if its process had died, or, if its claim
  /// was unsynced too, as if the attempt had never begun.
  ///
  /// Returns no value and changes nothing if the storage has no such step; the storage then returns no value for every
  /// call. A storage that may throw OutcomeUnknown has no such step. Throws StorageError. Any thread.
  [[nodiscard]] std::optional<FinishedAndClaimed> finishUnsynced(const LeaseRef& lease, const Outcome& outcome,
                                                                 const ClaimWant& want, const Holder& holder,
                                                                 CallId id) {
    return abiMinor() >= 5 ? doFinishUnsynced(lease, outcome, want, holder, id) : std::nullopt;
  }

  /// Since ABI minor 6. Claims jobs as claim() does, and passes over the rest of a queue from the first job on whose
  /// input has no room: the inputs of the call have at most `mostBytes` bytes in all. An input of at most kSmallInput
  /// bytes has always room. The caller provides for the memory of the inputs before they are read. A storage of an
  /// older minor claims without the bound.
  [[nodiscard]] BoundedClaim claimWithin(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                                         std::uint64_t mostBytes) {
    return abiMinor() >= 6 ? doClaimWithin(wants, holder, id, mostBytes)
                           : LeaseStore::doClaimWithin(wants, holder, id, mostBytes);
  }

 private:
  /// Implements lose(). The default implementation releases the jobs and counts no loss.
  [[nodiscard]] virtual SweepResult doLose(std::span<const LeaseRef> leases) {
    release(leases);
    return {};
  }

  /// Implements adopt(). The default implementation leaves all jobs to sweep().
  [[nodiscard]] virtual std::vector<ClaimedJob> doAdopt(const Holder& /*holder*/) { return {}; }

  /// Implements finishAll(). The default implementation calls finish() for each attempt.
  [[nodiscard]] virtual std::vector<ReportResult> doFinishAll(std::span<const EndedAttempt> ends) {
    std::vector<ReportResult> results;
    results.reserve(ends.size());
    for (const EndedAttempt& end : ends) results.push_back(finish(end.lease, end.outcome));
    return results;
  }

  /// Implements finishUnsynced(). The default implementation is for storages without this step.
  [[nodiscard]] virtual std::optional<FinishedAndClaimed> doFinishUnsynced(const LeaseRef&, const Outcome&,
                                                                           const ClaimWant&, const Holder&, CallId) {
    return std::nullopt;
  }

  /// Implements claimWithin(). The default implementation calls claim().
  [[nodiscard]] virtual BoundedClaim doClaimWithin(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                                                   std::uint64_t /*mostBytes*/) {
    return {claim(wants, holder, id), {}};
  }
};

}  // namespace jobq

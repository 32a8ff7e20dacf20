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
#include "jobq/capabilities.h"
#include "jobq/error.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
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

/// An input of at most so many bytes has always room (LeaseStore::claim()).
inline constexpr std::uint64_t kSmallInput = 16UL << 10;

/// A claim for the workers of one endpoint in the step of Storage::insertAndClaim() or LeaseStore::finish().
struct FusedClaim {
  ClaimWant want;
  Holder holder;
  CallId id = 0;
};

/// Most bytes of the inputs of a FusedClaim. A job with a larger input is left to claim().
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

/// Result of LeaseStore::claim().
struct ClaimResult {
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

/// An attempt whose run has ended.
struct EndedAttempt {
  LeaseRef lease;
  Outcome outcome;
  std::optional<Millis> tryAgainAfter{};  ///< Planned: pause before a retry; every storage refuses the value
};

/// When a step is durable.
enum class Durability {
  synced,   ///< when the call returns
  unsynced  ///< later, as the contract of the operation says
};

/// Result of LeaseStore::finish().
struct FinishResult {
  std::vector<ReportResult> reports;  ///< one for each attempt, in the order of the call
  std::vector<ClaimedJob> claimed;    ///< jobs of the FusedClaim, as LeaseStore::claim() returns them
};

/// An attempt whose run ends without an outcome.
struct ReturnedJob {
  LeaseRef lease;
  bool isLoss = false;   ///< the worker was lost; else the job returns unharmed
  std::string reason{};  ///< Planned: why the worker was lost, as part of the job's error; unused until then
};

/// An endpoint with queued jobs.
struct QueuedEndpoint {
  EndpointId endpoint;
  bool hasNormal = false;  ///< a queued job has no lowPriority
  bool operator==(const QueuedEndpoint&) const = default;
};

/// Result of one sweep, or of one call of giveBack().
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
  ///
  /// `id` is the id of the call. After OutcomeUnknown the caller asks claimed() for the jobs until that call answers:
  /// until then the jobs run at no worker. Not repeatable: a second call with the same id claims further jobs.
  ///
  /// Unsynced: a loss of power may undo the claim, and a later claim then gives the job the same attempt. The attempt
  /// still fences workers inside the server, because they stopped with the machine. A remote worker may still run the
  /// former claim: the server accepts its report only while the same worker has the job again.
  ///
  /// The call passes over the rest of a queue from the first job on whose input has no room: the inputs of the call
  /// have at most `mostBytes` bytes in all. An input of at most kSmallInput bytes has always room. The caller provides
  /// for the memory of the inputs before they are read.
  [[nodiscard]] virtual ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                                          std::uint64_t mostBytes = kAnyBytes) = 0;

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

  /// Records the outcomes of attempts, in the order of `ends`: of two outcomes of one attempt the first counts. An
  /// outcome sets the state COMPLETED or FAILED, the output and the error, finishedAt, the counter, the owed webhook,
  /// and, unless setTtl() has set it, the expiry min(submission + ttl, completion + retention). Discards the progress
  /// of the attempt, as any end of a run does. Reports accepted, or staleAttempt if the job is not IN_PROGRESS under
  /// the attempt. Repeatable: reports accepted and changes nothing if the job has ended under this attempt with the
  /// same state, error and output.
  ///
  /// A storage may record several outcomes in one step, or in several. If the call throws, any of the outcomes may be
  /// recorded, and a repeated call reports for these too. Each attempt counts from the begin of the call as finished,
  /// for sweep() and giveBack().
  ///
  /// With a `claim`, which needs Capability::finishAndClaim, `ends` has one attempt, whose endpoint and worker `claim`
  /// names: the worker is free with this step, which also claims as claim() does, for a stale attempt too. The claim
  /// leaves a job queued whose input is over kMostFusedInput. A storage that may throw OutcomeUnknown has no such step.
  ///
  /// Durability::unsynced, which needs Capability::finishUnsynced, is for a job whose end no caller learns of now: the
  /// worker goes on without a wait for the disk. The storage makes the end durable before JobStore::find(),
  /// JobStore::list(), ChunkStore::read() or ChunkStore::consume() shows the end, before OutboxStore::claimDue()
  /// returns the owed webhook, and within about 5 ms; if the process dies before, with the next NodeStore::join().
  /// Numbers and totals of jobs, lists of jobs in other states, JobStore::summaries(), states(), OutboxStore::list()
  /// and backups may follow the end earlier. A loss of power before undoes the whole step: the attempt is as if its
  /// process had died, or, if its claim was unsynced too, as if the attempt had never begun.
  [[nodiscard]] virtual FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                                            const std::optional<FusedClaim>& claim) = 0;

  /// Records the outcome of one attempt: durable with the return, and without a claim.
  [[nodiscard]] ReportResult finish(const LeaseRef& lease, Outcome outcome) {
    const EndedAttempt end{lease, std::move(outcome)};
    return finish({&end, 1}, Durability::synced, std::nullopt).reports.front();
  }

  /// Sets the job's progress to `json`, JSON text. Returns staleAttempt if the job is not IN_PROGRESS under the
  /// attempt. Repeatable: the same progress replaces itself. Unsynced.
  [[nodiscard]] virtual ReportResult progress(const LeaseRef& lease, std::string json) = 0;

  /// Returns jobs to the queue: IN_QUEUE with the old position and a grown attempt; chunks and progress are discarded.
  /// For a loss, losses and retries grow by one, and so does `retried` of the endpoint; otherwise these numbers stay.
  /// For a loss the call does now what sweep() does for the jobs of a life that has ended. The job is FAILED instead if
  /// losses reach maxAttempts, with the error that sweep() gives the job. Skips stale leases, and an attempt with a
  /// finish() of the same process that began before the call, also if the outcome is stored later. Returns `stopped`,
  /// `finished` and `requeuedAt` for the jobs that this call took back; `removed` is 0 and `more` is false. Repeatable,
  /// but for the lists: a repeated call finds stale leases and names no job. After OutcomeUnknown the lists are lost,
  /// and the caller does what sweep() says for that case.
  virtual SweepResult giveBack(std::span<const ReturnedJob> jobs) = 0;

  /// Does the periodic work of the store, at most `max` jobs for each step, in this order:
  ///  - Frees expired jobs; `stopped` names the jobs with a worker.
  ///  - Ends IN_PROGRESS jobs past their execution timeout as TIMED_OUT, with overTimeError().
  ///  - On a shared storage, ends the lives of nodes without a beat (node_store.h).
  ///  - Takes back jobs whose holder's life has ended. Losses and retries grow by one. The job is IN_QUEUE with the old
  ///    position, a grown attempt and without chunks and progress; or FAILED if losses reach maxAttempts, with an error
  ///    that says how often the worker was lost.
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

  /// Makes `holder` the holder of the jobs that an ended life has left IN_PROGRESS at workers that outlive their node
  /// (outlivesNode()), unless a sweep() has taken them back. Needs Capability::adopt, which a storage of several nodes
  /// does not have. Called after join(), before the next sweep. Returns the jobs as claim() does, without their inputs;
  /// an empty result if the life of `holder` has ended. Repeatable, but for the result: a repeated call returns only
  /// the jobs that it gives to `holder` itself. Unsynced.
  [[nodiscard]] virtual std::vector<ClaimedJob> adopt(const Holder& /*holder*/) { throwLacking("LeaseStore::adopt()"); }
};

}  // namespace jobq

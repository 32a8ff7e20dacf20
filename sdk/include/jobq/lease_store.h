// Store of leases: the operations of a worker (claim, renew, finish, report), and the treatment of jobs of failed
// workers. A thread uses these operations; Planned: a child process and a remote machine use the same. The rules for
// every store are in storage.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/call_id.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// Idle workers of one endpoint. A claim gives each worker at most one job.
struct ClaimWant {
  EndpointId endpoint;
  std::vector<WorkerId> workers;
};

/// The owner of a claim and the end of the claim's lease.
struct Holder {
  /// Kind of the lease.
  enum class Kind {
    process,  ///< The lease ends with the process that opened the storage. A storage for a single process never ends
              ///< such a lease by time. A shared storage treats the lease as timed; Planned: the holder renews it
              ///< every second.
    timed,    ///< the lease ends unless renewed within `lease`; Planned: no caller yet
  };
  /// Name of the node that claims.
  std::string node;
  Kind kind = Kind::process;
  Millis lease{10'000};  ///< duration of a lease of kind `timed`
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
  Instant deadline{};          ///< startedAt + executionTimeout, or the expiry if earlier
  std::uint64_t logLines = 0;  ///< number of log lines of all earlier attempts, also of lines dropped since
};

/// Answer of renew() about one lease: still valid; ended because the job was cancelled; ended for any further reason.
enum class LeaseState { held, cancelled, lost };
/// Answer to a report about an attempt.
enum class ReportResult {
  accepted,
  staleAttempt,  ///< the job is not IN_PROGRESS under this attempt, and the report does not repeat its end; the report
                 ///< changed nothing, and the worker drops its work
};

/// Result of one sweep.
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
  /// of each by one. No two callers ever receive a job under the same attempt. Returns the claimed jobs, for each want
  /// in the order of its workers; an empty result means that no job waits. `id` is the id of the call. After
  /// OutcomeUnknown the caller asks claimed() for the jobs until that call answers: until then the jobs run at no
  /// worker. Not repeatable: a second call with the same id claims further jobs.
  [[nodiscard]] virtual std::vector<ClaimedJob> claim(std::span<const ClaimWant> wants, const Holder& holder,
                                                      CallId id) = 0;

  /// Returns the jobs that are IN_PROGRESS under the claim `id`, called with the same `wants`, in the order of claim()
  /// and with their present values. A job whose attempt has ended since the claim is left out. The storage makes sure
  /// that the step of an unanswered claim has happened, or never happens, before the call returns. Changes nothing.
  [[nodiscard]] virtual std::vector<ClaimedJob> claimed(std::span<const ClaimWant> wants, CallId id) = 0;

  /// Moves the end of each valid timed lease to `lease` milliseconds from now; a lease of kind `process` needs no
  /// renewal. Returns one state for each lease, in the order of the arguments. Repeatable: a repeated call moves the
  /// ends again.
  [[nodiscard]] virtual std::vector<LeaseState> renew(std::span<const LeaseRef> leases, Millis lease) = 0;

  /// Records the outcome of an attempt: the state COMPLETED or FAILED, the output and the error, finishedAt, the
  /// counter, the owed webhook, and, unless setTtl() has set it, the expiry min(submission + ttl, completion +
  /// retention). Discards the progress of the attempt, as any end of a run does. Returns accepted, or staleAttempt if
  /// the job is not IN_PROGRESS under the attempt. Repeatable: returns accepted and changes nothing if the job has
  /// ended under this attempt with the same state, error and output.
  [[nodiscard]] virtual ReportResult finish(const LeaseRef& lease, Outcome outcome) = 0;

  /// Sets the job's progress to `json`, JSON text. Returns staleAttempt if the job is not IN_PROGRESS under the
  /// attempt. Repeatable: the same progress replaces itself.
  [[nodiscard]] virtual ReportResult progress(const LeaseRef& lease, std::string json) = 0;

  /// Returns jobs to the queue unharmed: IN_QUEUE with the old position; the attempt grows, the losses do not; chunks
  /// and progress are discarded; the return does not count as retried. Skips stale leases. Returns the number of
  /// returned jobs. Repeatable, but for the number: a repeated call finds stale leases and counts only the jobs that it
  /// returns itself.
  virtual std::size_t release(std::span<const LeaseRef> leases) = 0;

  /// Does the periodic work of the store, at most `max` jobs for each step, in this order:
  ///  - Frees expired jobs; `stopped` names the jobs with a worker.
  ///  - Ends IN_PROGRESS jobs past their execution timeout as TIMED_OUT, with overTimeError().
  ///  - Takes back jobs whose lease has ended or whose process has died. Losses and retries grow by one. The job is
  ///    IN_QUEUE with the old position, a grown attempt and without chunks and progress; or FAILED if losses reach
  ///    maxAttempts, with an error that says how often the worker was lost.
  ///  - Drops idempotency records, delivery records and logs that have outlived their time.
  ///
  /// A finish() that began before the sweep counts as earlier, also if the outcome is stored later: the sweep neither
  /// times out the job nor takes the job back.
  ///
  /// After OutcomeUnknown the lists are lost: a further call does the remaining work and names other jobs. The caller
  /// then asks renew() about each attempt that it runs, reads each job that a client waits for, and treats all queues
  /// and owed webhooks as changed.
  [[nodiscard]] virtual SweepResult sweep(std::size_t max) = 0;

  /// Returns the number of jobs of the endpoint in front of the job in the present queue, counted up to `most`. The
  /// answer `most` may be a second old. Returns an empty optional if the job is absent or not IN_QUEUE.
  [[nodiscard]] virtual std::optional<std::size_t> ahead(const JobKey& key, std::size_t most) = 0;
};

}  // namespace jobq

// Storage, face 2: the four verbs of a worker (claim, renew, finish, report), and what becomes of jobs whose worker
// fails. A thread, a child process and a remote machine use the same verbs. The general rules are in storage.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// Free workers of one endpoint: at most one job is claimed for each.
struct ClaimWant {
  EndpointId endpoint;
  std::vector<WorkerId> workers;
};

/// Who claims, and how long the claim holds.
struct Holder {
  enum class Kind {
    process,  ///< the claim ends with the process that opened the storage. A storage that only one process can open
              ///< never ends it by time; a shared one treats it as timed, and the holder renews it every second
    timed,    ///< the claim ends when it is not renewed within `lease`
  };
  std::string node;
  Kind kind = Kind::process;
  Millis lease{10'000};
};

/// A job that is now IN_PROGRESS, recorded before this is returned.
struct ClaimedJob {
  LeaseRef lease;
  EndpointId endpoint;
  WorkerId worker;
  std::string input;
  std::string webhook;
  std::string s3Config;  ///< sealed, as it was inserted
  JobPolicy policy;
  Instant submittedAt{};
  Instant startedAt{};
  Instant deadline{};  ///< startedAt + executionTimeout, or the expiry if that comes first
};

enum class LeaseState { held, cancelled, lost };
enum class ReportResult {
  accepted,
  staleAttempt,  ///< the job is not IN_PROGRESS under this attempt: nothing changed, the reporter lets go of it
};

/// What one sweep did. `more`: a bound was reached, sweep again at once.
struct SweepResult {
  std::vector<LeaseRef> stopped;       ///< attempts that ended under a worker: expired, timed out or lost
  std::vector<JobKey> finished;        ///< jobs that became FAILED or TIMED_OUT: their waiters have to be told
  std::vector<JobKey> expired;         ///< jobs that were deleted while they waited: so do their waiters have to be
  std::vector<EndpointId> requeuedAt;  ///< endpoints (each once) where a job went back in line
  std::size_t removed = 0;             ///< expired jobs whose space was freed
  bool more = false;
};

/// How the error of a TIMED_OUT job begins, and what a handler says that ends itself for that reason.
inline constexpr std::string_view kOverTime = "the job ran longer than its execution timeout";

/// The error of a TIMED_OUT job.
inline std::string overTimeError(Millis executionTimeout) {
  return std::string(kOverTime) + " of " + std::to_string(executionTimeout.count()) +
         " ms; raise policy.executionTimeout if the job needs longer";
}

class JOBQ_VISIBLE LeaseStore : public abi::Versioned {
 public:
  virtual ~LeaseStore() = default;

  /// Takes waiting jobs in the line's order, (lowPriority, rank, arrival), for all wants in one step. No job is ever
  /// handed to two callers under one attempt. Empty when nothing waits. attempt grows by one.
  [[nodiscard]] virtual std::vector<ClaimedJob> claim(std::span<const ClaimWant> wants, const Holder& holder) = 0;

  /// Extends the leases that are still held; one answer per ref, in order.
  [[nodiscard]] virtual std::vector<LeaseState> renew(std::span<const LeaseRef> leases, Millis lease) = 0;

  /// Records the outcome: COMPLETED or FAILED, finishedAt, the expiry min(submission + ttl, completion + retention),
  /// the counter, the owed webhook. The attempt's progress is discarded, as at every other end of a run.
  [[nodiscard]] virtual ReportResult finish(const LeaseRef& lease, Outcome outcome) = 0;

  /// Sets the job's progress, JSON text.
  [[nodiscard]] virtual ReportResult progress(const LeaseRef& lease, std::string json) = 0;

  /// Hands jobs back unharmed: IN_QUEUE, old place in line, attempt grows, losses do not, chunks and progress
  /// discarded, not counted as retried. Stale ones are skipped. Returns how many went back.
  virtual std::size_t release(std::span<const LeaseRef> leases) = 0;

  /// In this order, at most `max` jobs each: frees expired jobs (those of a worker are named in `stopped`); ends
  /// IN_PROGRESS jobs past their execution timeout as TIMED_OUT, with overTimeError(); takes jobs whose lease has ended
  /// or whose process has died: losses and retries grow by one, then IN_QUEUE with the old place in line, attempt
  /// grown, chunks and progress discarded, or FAILED when losses reach maxAttempts, with an error that says how often
  /// its worker was lost. A finish() that began before the sweep counts as earlier, however late it is stored: the
  /// sweep neither times out its job nor takes it. Also drops idempotency records, delivery records and logs that have
  /// outlived their time.
  [[nodiscard]] virtual SweepResult sweep(std::size_t max) = 0;

  /// How many jobs of its endpoint will be claimed before this one, as the line is now; counted up to `most`. The
  /// answer `most` may be a second old. Nothing when the job is absent or not IN_QUEUE.
  [[nodiscard]] virtual std::optional<std::size_t> ahead(const JobKey& key, std::size_t most) = 0;
};

}  // namespace jobq

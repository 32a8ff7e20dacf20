// A job in the hands of a remote worker.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/workers/run/attempt_reports.h"
#include "core/workers/run/deadline_timer.h"
#include "core/workers/run/input_memory.h"
#include "core/workers/run/running_jobs.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class RunReports;
class SecretBox;

class RemoteRun;
using RemoteRunPtr = std::shared_ptr<RemoteRun>;

/// A run with the outcome.
struct EndedRun {
  RemoteRunPtr run;
  Outcome outcome;
};

/// Told when a run has to end: the job is cancelled, overdue or deleted, or the node is fenced.
class RunEndListener {
 public:
  virtual ~RunEndListener() = default;
  /// Called once for a run, on any thread. The run must not be destroyed inside.
  virtual void runMustEnd(const RemoteRun& run) = 0;
};

/// An attempt of a job that a remote worker runs, from the claim to the end, at the node that has claimed the job. Any
/// thread.
class RemoteRun final : public AttemptReports {
 public:
  /// All members outlive the run.
  struct Deps {
    RunReports& reports;
    Storage& storage;
    RunningJobs& running;
    DeadlineTimer& deadlines;
    const SecretBox& secrets;
    Clock& clock;
  };
  RemoteRun(const Deps& deps, ClaimedJob job);

  /// Returns the place of the worker in the pool (RemoteWorkers).
  const WorkerId& place() const noexcept { return job_.worker; }

  bool isLowPriority() const noexcept { return job_.policy.lowPriority; }
  /// Returns true if the job was submitted at `moment` or later.
  bool isSubmittedSince(Instant moment) const noexcept { return job_.submittedAt >= moment; }
  /// Returns the bytes of the input, 0 after moveText().
  std::size_t inputSize() const noexcept { return job_.input.size(); }

  /// Sets the listener, which is called at once if the job has to end already. Called once. The listener outlives the
  /// run.
  void setListener(RunEndListener& listener) { stopCallback_.emplace(entry_.token(), StopCall{listener, *this}); }

  /// Returns the configuration of the job's object store in clear text, empty without a configuration. Throws Error if
  /// no key of the node opens the secret.
  std::string openS3Config() const;
  /// Returns an upper bound of the bytes that moveText() appends.
  std::size_t textSize() const noexcept;
  /// Appends the job in the form for the worker: a JSON object with `id` and `input`, with `webhook` if the submission
  /// has a webhook, with `s3Config` (of openS3Config()) and `batchId` unless the texts are empty. Frees the input, so a
  /// second call is not allowed.
  void moveText(std::string& to, std::string_view s3Config, std::string_view batch);

  /// Records the end of the attempt. Returns staleAttempt for an attempt that has ended before. A result after the
  /// deadline is stale, because the job is TIMED_OUT then. Throws StorageError.
  ReportResult finish(Outcome outcome) override;
  /// Does the same for several runs of the same node, with a single call of the storage. After StorageError any of the
  /// outcomes may be recorded.
  static void finishAll(std::vector<EndedRun> ends);

 private:
  struct StopCall {
    void operator()() const { listener.runMustEnd(run); }
    RunEndListener& listener;
    const RemoteRun& run;
  };

  bool beginFinish() const;

  const Deps deps_;
  ClaimedJob job_;
  InputMemory::Held input_;
  const Instant deadline_;
  const RunningJobs::Entry entry_;
  const DeadlineTimer::Entry limit_;
  // Declared after the members that the callback may need.
  std::optional<std::stop_callback<StopCall>> stopCallback_;
};

}  // namespace jobq

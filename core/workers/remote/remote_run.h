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

/// A run with its outcome.
struct EndedRun {
  RemoteRunPtr run;
  Outcome outcome;
};

/// Told when a run has to end: its job is cancelled, overdue or deleted, or its node is fenced.
class RunEndListener {
 public:
  virtual ~RunEndListener() = default;
  /// Called once for a run, on any thread. The run must not be destroyed inside.
  virtual void runMustEnd(const RemoteRun& run) = 0;
};

/// One attempt of a job that a remote worker runs, from the claim to its end, at the node that has claimed the job. Any
/// thread.
class RemoteRun final : public AttemptReports {
 public:
  /// Everything here outlives the run.
  struct Deps {
    RunReports& reports;
    Storage& storage;
    RunningJobs& running;
    DeadlineTimer& deadlines;
    const SecretBox& secrets;
    Clock& clock;
  };
  RemoteRun(const Deps& deps, ClaimedJob job);

  /// Returns the place of the worker in its pool (RemoteWorkers).
  const WorkerId& place() const noexcept { return job_.worker; }

  bool isLowPriority() const noexcept { return job_.policy.lowPriority; }
  /// Returns true if the job was submitted at `moment` or later.
  bool isSubmittedSince(Instant moment) const noexcept { return job_.submittedAt >= moment; }
  /// Returns the bytes of the input, 0 behind moveText().
  std::size_t inputSize() const noexcept { return job_.input.size(); }

  /// Sets the listener, which is called at once if the job has to end already. Called once. The listener outlives the
  /// run.
  void setListener(RunEndListener& listener) { stopCallback_.emplace(entry_.token(), StopCall{listener, *this}); }

  /// Returns the configuration of the job's object store in clear text, empty without one. Throws Error if no key of
  /// this node opens the secret.
  std::string openS3Config() const;
  /// Returns the bytes that moveText() appends at most.
  std::size_t textSize() const noexcept;
  /// Appends the job as the worker gets it: a JSON object with `id` and `input`, with `webhook` if the caller gave one,
  /// with `s3Config` (of openS3Config()) and `batchId` unless the texts are empty. Frees the input: called once.
  void moveText(std::string& to, std::string_view s3Config, std::string_view batch);

  /// Records the end of the attempt. Returns staleAttempt for an attempt that has ended before. A result behind the
  /// deadline is stale, because the job is TIMED_OUT then. Throws StorageError.
  ReportResult finish(Outcome outcome) override;
  /// Does the same for several runs of one node, with one call of the storage. After StorageError any of the outcomes
  /// may be recorded.
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
  // Behind the members that the callback may need.
  std::optional<std::stop_callback<StopCall>> stopCallback_;
};

}  // namespace jobq

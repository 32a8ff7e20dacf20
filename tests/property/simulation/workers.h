// The workers of a node. A handler runs until a move of the schedule; at several nodes also until the handler obeys the
// stop token, at most 4.5 s after the stop. A worker reports like ThreadExecutor (`core/workers/thread_executor.h`):
// the worker keeps the outcome until the storage answers accepted or stale, and drops the outcome of a fenced run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/jobs/claimer.h"
#include "core/jobs/deferred_insert.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/run_reports.h"
#include "core/maintenance/sweeper.h"
#include "core/workers/run/executor.h"
#include "core/workers/run/running_jobs.h"
#include "handler_rules.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "world.h"

namespace jobq::model {

/// The reports of one run.
class RunProgress {
 public:
  explicit RunProgress(std::uint64_t logLines) : lines_(logLines) {}
  /// Reports a progress, a chunk or a log line, by the number.
  void report(const LeaseRef& lease, std::uint32_t number, Storage& storage);

 private:
  std::uint64_t lines_;       // number of the next log line
  std::uint64_t chunks_ = 0;  // number of accepted chunks
};

/// Returns a success, or for each fourth number a failure.
Outcome outcomeOf(std::uint32_t number);

/// Dies with its process.
class Workers final : public Executor {
 public:
  /// Everything here outlives the workers.
  struct Deps {
    World& world;
    const std::string& node;
    const Clock& clock;
    RunningJobs& running;
    RunReports& reports;
    Sweeper& sweeper;
  };
  explicit Workers(const Deps& deps) : deps_(deps) {}
  ~Workers() override;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void startWorker(const EndpointPtr& endpoint, const ReleasePtr&, const WorkerId& worker, WorkerEvents& to) override;
  void assign(ClaimedJob job) override { assignUnstored(std::move(job), nullptr); }
  void assignUnstored(ClaimedJob job, const std::shared_ptr<DeferredInsert>& insert) override;
  void stopWorker(const WorkerId& worker) override;

  /// Does what the threads of the workers do in a moment: workers start and end, handlers obey, outcomes are reported.
  void step();
  /// Makes the first starting worker ready, or lets its start fail. Returns false without such a worker.
  bool endStart(bool succeeds);
  /// Ends the first stopping worker. Returns false without such a worker.
  bool endStop();
  /// Reports from the run number `which`, if any.
  void report(std::size_t which, std::uint32_t number);
  /// Lets the handler number `which` return with the outcome, and reports the outcome; reports again for a handler that
  /// has returned. The worker has its next job then, or is free, and the callers of the job are told.
  void finish(std::size_t which, Outcome outcome);
  /// Ends all runs in an orderly stop, with their jobs back in the queue.
  void stopAll();

  /// Returns the attempts whose handlers run without a stop.
  std::vector<LeaseRef> unstopped() const;
  /// Returns the number of runs.
  std::size_t runs() const { return runs_.size(); }
  /// Compares the counts of the pool with the workers.
  void check(const Endpoint& endpoint, const WorkerCounts& counts) const;
  /// Counts the workers of the endpoint that can have a job: starting, idle and running.
  WorkerCounts count(const EndpointId& endpoint) const;

 private:
  using Place = std::pair<EndpointId, WorkerId>;
  struct Run {
    ClaimedJob job;
    std::shared_ptr<DeferredInsert> insert;
    Instant deadline{};
    std::unique_ptr<RunningJobs::Entry> entry{};
    std::stop_token token{};
    RunProgress progress;
    std::optional<HandlerRules::Place> handler{};  // while the handler runs
    std::optional<Instant> obeysAt{};              // after a stop
    std::optional<Outcome> outcome{};              // the handler has returned
    std::optional<FinishedRun> end{};              // the outcome is stored or stale
    bool hasNoticedDeadline = false;
    bool isBusy = false;  // a call of the storage is under way

    Place place() const { return {job.endpoint, job.worker}; }
  };
  using RunPlace = std::list<Run>::iterator;

  RunPlace runAt(std::size_t which);
  bool stepRun(Run& run);
  void endHandler(Run& run);
  bool handlerReturns(Run& run, Outcome outcome);
  bool reportEnd(Run& run);
  void endRun(RunPlace place);

  const Deps deps_;
  WorkerEvents* events_ = nullptr;
  std::deque<Place> starting_;
  std::set<Place> idle_;
  std::deque<Place> leaving_;
  std::list<Run> runs_;
};

}  // namespace jobq::model

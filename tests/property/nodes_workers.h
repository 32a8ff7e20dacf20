// The workers of a node in the simulation of nodes. A handler runs until a move of the schedule, or until the handler
// obeys the stop token, at most 4.5 s after the stop. A worker reports like ThreadExecutor
// (`core/workers/thread_executor.h`): the worker keeps the outcome until the storage answers accepted or stale, and
// drops the outcome of a fenced run.
#pragma once

#include <cstddef>
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
#include "core/jobs/run_reports.h"
#include "core/maintenance/sweeper.h"
#include "core/workers/run/executor.h"
#include "core/workers/run/running_jobs.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "nodes_handler_rules.h"
#include "nodes_judge.h"
#include "nodes_world.h"

namespace jobq::model {

/// Dies with its process.
class NodeWorkers final : public Executor {
 public:
  /// Everything here outlives the workers.
  struct Deps {
    NodesWorld& world;
    const std::string& node;
    const Clock& clock;
    RunningJobs& running;
    RunReports& reports;
    Sweeper& sweeper;
  };
  explicit NodeWorkers(const Deps& deps) : deps_(deps) {}
  ~NodeWorkers() override;
  NodeWorkers(const NodeWorkers&) = delete;
  NodeWorkers& operator=(const NodeWorkers&) = delete;

  void startWorker(const EndpointPtr& endpoint, const ReleasePtr&, const WorkerId& worker, WorkerEvents& to) override;
  void assign(ClaimedJob job) override;
  void stopWorker(const WorkerId& worker) override;

  /// Does what the threads of the workers do in a moment: workers start and end, handlers obey, outcomes are reported.
  void step();
  /// Lets the handler number `which` return with an outcome, and reports the outcome.
  void finish(std::size_t which, bool succeeds);
  /// Ends all runs in an orderly stop, with their jobs back in the queue.
  void stopAll();

  /// Returns the attempts whose handlers run without a stop.
  std::vector<LeaseRef> unstopped() const;
  /// Returns the number of runs.
  std::size_t runs() const { return runs_.size(); }
  /// Compares the counts of the pools with the workers.
  void check(const EndpointId& endpoint, const WorkerCounts& counts) const;
  /// Returns the number of workers of the endpoint that can have a job.
  std::size_t workers(const EndpointId& endpoint) const;

 private:
  using Place = std::pair<EndpointId, WorkerId>;
  struct Run {
    LeaseRef lease;
    Place place;
    Instant deadline{};
    Millis obeysAfter{0};
    std::unique_ptr<RunningJobs::Entry> entry;
    std::stop_token token;
    std::optional<HandlerRules::Place> handler{};  // while the handler runs
    std::optional<Instant> stoppedAt{};
    std::optional<Outcome> outcome{};  // the handler has returned, and its outcome is not stored yet
    bool hasNoticedDeadline = false;
    bool isBusy = false;  // a call of the storage is under way
  };
  using RunPlace = std::list<Run>::iterator;

  void stepWorkers();
  bool stepRun(Run& run);
  void endHandler(Run& run);
  bool handlerReturns(Run& run, Outcome outcome);
  bool report(Run& run);
  void endRun(RunPlace run);

  const Deps deps_;
  WorkerEvents* events_ = nullptr;
  std::deque<Place> starting_;
  std::set<Place> idle_;
  std::deque<Place> leaving_;
  std::list<Run> runs_;
};

}  // namespace jobq::model

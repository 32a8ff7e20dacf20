// The workers of a simulation. No worker runs a handler: the schedule decides about starts, reports and results.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/jobs/deferred_insert.h"
#include "core/jobs/run_reports.h"
#include "core/workers/run/executor.h"
#include "jobq/call_id.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "simulation_moves.h"
#include "simulation_world.h"

namespace jobq::model {

/// Workers from the view of the dispatcher; a worker dies with the process. Each event waits in the object for its
/// release by the schedule.
class LocalWorkers final : public Executor {
 public:
  using Place = std::pair<EndpointId, WorkerId>;

  explicit LocalWorkers(World& world) : world_(world) {}

  void startWorker(const EndpointPtr& endpoint, const ReleasePtr&, const WorkerId& worker, WorkerEvents& to) override;
  void assign(ClaimedJob job) override { assignUnstored(std::move(job), nullptr); }
  void assignUnstored(ClaimedJob job, const std::shared_ptr<DeferredInsert>& insert) override;
  void stopWorker(const WorkerId& worker) override;

  /// Makes the first starting worker ready, or lets its start fail.
  void finishStart(const Move& move);
  /// Ends the first stopping worker.
  void finishStop();
  void report(const Move& move);
  /// Finishes like a worker thread: the outcome is stored or stale, the worker has its next job or is free, and the
  /// callers of the job are told.
  void finish(std::size_t which, const Move& move, RunReports& reports);

  const std::deque<Place>& starting() const { return starting_; }
  const std::set<Place>& idle() const { return idle_; }
  const std::vector<Run>& running() const { return running_; }
  const std::deque<Place>& leaving() const { return leaving_; }

 private:
  World& world_;
  WorkerEvents* events_ = nullptr;
  std::deque<Place> starting_;
  std::set<Place> idle_;
  std::vector<Run> running_;
  std::deque<Place> leaving_;
};

/// Workers on another machine, with timed leases. The workers outlive each process of the core.
class RemoteWorkers {
 public:
  explicit RemoteWorkers(World& world) : world_(world) {}

  void claim(const Move& move);
  void ask(const Move& move);
  void report(const Move& move);
  void finish(std::size_t which, const Move& move, RunReports& reports);

  const std::vector<Run>& running() const { return running_; }

 private:
  World& world_;
  std::vector<Run> running_;  // also with a lease long gone
  CallId lastClaim_ = 0;
};

}  // namespace jobq::model

// A process of a node in the simulation of nodes: real objects of the core, whose threads are played by step().
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/jobs/change_poller.h"
#include "core/jobs/claimer.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/run_reports.h"
#include "core/maintenance/sweeper.h"
#include "core/workers/deferred_inserts.h"
#include "core/workers/dispatcher.h"
#include "core/workers/lease_keeper.h"
#include "core/workers/node/node_life.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/pool/worker_supervisor.h"
#include "core/workers/run/running_jobs.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "nodes_judge.h"
#include "nodes_workers.h"
#include "nodes_world.h"
#include "testkit/forwarding_storage.h"
#include "tests/support/fakes.h"

namespace jobq::model {

/// The log of a process. A refused change of a worker's state is a finding.
class NodeLog final : public Log {
 public:
  explicit NodeLog(NodesJudge& judge) : judge_(judge) {}

  void write(LogLevel, std::string_view event, std::string_view message) noexcept override {
    if (event == "worker.state") judge_.findings.note(std::string(message));
    if (event == "node.fenced") ++judge_.findings.played.fences;
  }

 private:
  NodesJudge& judge_;
};

/// A storage in which a join answers the current life of another NodeLife. A second NodeLife over the storage has the
/// same life, and never sees the fence.
class SameLife final : public testkit::ForwardingStorage {
 public:
  SameLife(Storage& inner, const NodeLife& life) : ForwardingStorage(inner), nodes_(inner.nodes(), life) {}
  NodeStore& nodes() override { return nodes_; }

 private:
  class Nodes final : public testkit::ForwardingNodes {
   public:
    Nodes(NodeStore& inner, const NodeLife& life) : ForwardingNodes(inner), life_(life) {}
    Holder join(std::string_view, const std::optional<JobKey>&) override { return life_.holder(); }

   private:
    const NodeLife& life_;
  };
  Nodes nodes_;
};

/// Dies as a whole, with the workers and the waiting callers.
class NodeProcess {
 public:
  /// `storage` is the node's way to the storage. `number` makes the ids of the workers unique.
  NodeProcess(NodesWorld& world, const std::string& node, HostClock& clock, Storage& storage, int number);

  /// Starts like Application: begins a life and sweeps. Throws StorageError.
  void start();
  /// Stops in order, with the running jobs back in the queue.
  void stop();
  /// Lets each thread do the due work. A thread with a call under way does no work.
  void step();

  /// Registers a caller that waits for the end of the job.
  void await(const JobKey& job);
  /// Returns the jobs that callers wait for here.
  std::vector<JobKey> awaited() const;

  JobService& jobs() { return jobs_; }
  NodeWorkers& workers() { return workers_; }
  WorkerSupervisor& supervisor() { return supervisor_; }
  const NodeLife& life() const { return life_; }
  /// Checks the workers of each endpoint.
  void check() const;

 private:
  enum Thread : std::size_t { kBeats, kFence, kRuns, kChanges, kSweeper, kDispatcher, kWorkers, kCallers, kThreads };
  enum class Stage { joining, sweeping, running, leaving };  // as in Application
  struct Caller {
    Caller(CompletionNotifier& completions, JobKey key) : job(key), waiter(completions, std::move(key)) {}
    JobKey job;
    CompletionNotifier::Waiter waiter;
    bool isNew = true;
  };
  class SweepTasks final : public SweepListener {
   public:
    SweepTasks(RunReports& reports, WorkerSupervisor& supervisor) : reports_(reports), supervisor_(supervisor) {}
    void beforeSweep() override {}
    void swept(const SweepResult& result) override;
    void sweepUnanswered() override;
    void afterSweep() override {}

   private:
    RunReports& reports_;
    WorkerSupervisor& supervisor_;
  };

  void runThread(Thread thread);
  void work(Thread thread);
  void stepCallers();

  NodesWorld& world_;
  HostClock& clock_;
  NodeLog log_;
  QueueSignal queueSignal_;
  ClaimerSlot claimer_;
  CompletionNotifier completions_;
  test::CountingDeliveries deliveries_;
  JobService jobs_;
  RunReports reports_;
  RunningJobs running_;
  Sweeper sweeper_;
  NodeWorkers workers_;
  WorkerPools pools_;
  NodeLife life_;
  SameLife sameLife_;
  NodeLife unfenced_;
  WorkerSupervisor supervisor_;
  SweepTasks sweepTasks_;
  DeferredInserts inserts_;
  Dispatcher dispatcher_;
  LeaseKeeper keeper_;
  ChangePoller poller_;
  std::list<Caller> callers_;
  Stage stage_ = Stage::joining;
  std::array<Instant, kThreads> dueAt_{};
  std::array<bool, kThreads> isBusy_{};
};

}  // namespace jobq::model

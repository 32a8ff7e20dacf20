// A process of a node: real objects of the core. The threads are played, by moves or by step().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/suspended_call.h"
#include "core/jobs/change_poller.h"
#include "core/jobs/claimer.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "core/jobs/job_wait.h"
#include "core/jobs/later_submission.h"
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
#include "findings.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "testkit/forwarding_storage.h"
#include "tests/support/fakes.h"
#include "workers.h"
#include "world.h"

namespace jobq::model {

/// The log of a process. A refused change of a worker's state is a finding.
class ProcessLog final : public Log {
 public:
  explicit ProcessLog(Findings& findings) : findings_(findings) {}

  void write(LogLevel, std::string_view event, std::string_view message) noexcept override {
    if (event == "worker.state") findings_.note(message);
    if (event == "node.fenced") ++findings_.played["fences"];
  }

 private:
  Findings& findings_;
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

/// The ids of resumed calls. Any thread.
class ResumedCalls final : public CallResumer {
 public:
  void resume(std::uint64_t call) noexcept override {
    Lock lock(mutex_);
    calls_.insert(call);
  }
  /// Returns true if the call was resumed since the last call of this function.
  bool extractResumed(std::uint64_t call) {
    Lock lock(mutex_);
    return calls_.erase(call) == 1;
  }

 private:
  Mutex mutex_;
  std::set<std::uint64_t> calls_ JOBQ_GUARDED_BY(mutex_);
};

/// A call whose answer comes by time would hide that the end of the job is never told, so callers wait for a day.
inline constexpr Millis kLongestWait{86'400'000};

/// Dies as a whole, with the workers and the waiting callers.
class Process {
 public:
  /// `storage` is the node's way to the storage. `number` makes the ids of the workers unique.
  Process(World& world, const std::string& node, HostClock& clock, Storage& storage, int number);

  /// Starts like Application: begins a life and sweeps. Throws StorageError.
  void start();
  /// Stops in order, with the running jobs back in the queue.
  void stop();
  /// Begins another life of the node; the workers go on. Throws StorageError.
  void beginLife();
  /// Lets each thread of one of several nodes do the due work. A thread with a call under way does no work.
  void step();

  /// Polls a wait of at most kLongestWait for the end of the job, and keeps the call if the wait goes on.
  void await(JobKey job, std::unique_ptr<JobWait> wait);
  /// Continues the resumed calls, and the calls whose time is over.
  void resumeCalls();
  /// Returns the jobs of the calls that wait on.
  std::vector<JobKey> awaited() const;
  /// Checks the workers of each endpoint.
  void check() const;

  JobService& jobs() { return jobs_; }
  LaterSubmissions& later() { return later_; }
  RunReports& reports() { return reports_; }
  Workers& workers() { return workers_; }
  WorkerSupervisor& supervisor() { return supervisor_; }
  Dispatcher& dispatcher() { return dispatcher_; }
  DeferredInserts& inserts() { return inserts_; }
  Sweeper& sweeper() { return sweeper_; }
  const NodeLife& life() const { return life_; }

 private:
  enum Thread : std::size_t { kBeats, kFence, kRuns, kChanges, kSweeper, kDispatcher, kWorkers, kCallers, kThreads };
  enum class Stage { joining, sweeping, running, leaving };  // as in Application
  struct Call {
    std::uint64_t id = 0;
    JobKey job;
    Instant until{};
    std::unique_ptr<JobWait> wait;
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
  void poll(Call call);

  World& world_;
  HostClock& clock_;
  ProcessLog log_;
  ResumedCalls resumed_;
  QueueSignal queueSignal_;
  ClaimerSlot claimer_;
  CompletionNotifier completions_;
  test::CountingDeliveries deliveries_;
  JobService jobs_;
  LaterSubmissions later_;
  RunReports reports_;
  RunningJobs running_;
  Sweeper sweeper_;
  Workers workers_;
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
  std::deque<Call> calls_;
  std::uint64_t lastCall_ = 0;
  Stage stage_ = Stage::joining;
  std::array<Instant, kThreads> dueAt_{};
  std::array<bool, kThreads> isBusy_{};
};

}  // namespace jobq::model

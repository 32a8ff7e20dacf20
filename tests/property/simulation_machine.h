// The machine of a simulation: one process of the core after another, with power cuts and changes of the time of day
// between two processes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "comparison.h"
#include "core/base/suspended_call.h"
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
#include "core/workers/node/node_life.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/pool/worker_supervisor.h"
#include "core/workers/run/running_jobs.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "simulation_workers.h"
#include "simulation_world.h"
#include "tests/support/fakes.h"

namespace jobq::model {

/// The log of a process. A refused change of a worker's state is a finding.
class ProcessLog final : public Log {
 public:
  explicit ProcessLog(RunRules& rules) : rules_(rules) {}

  void write(LogLevel, std::string_view event, std::string_view message) noexcept override {
    if (event == "worker.state") rules_.note(message);
  }

 private:
  RunRules& rules_;
};

/// A call that waits for the end of a job. Continued by the schedule, once resumed or over.
struct WaitingCall {
  std::uint64_t id = 0;
  JobKey job;
  Instant until{};
  std::unique_ptr<JobWait> wait;
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

/// A process: real objects of the core.
struct Process {
  Process(World& world, LocalWorkers& workers, const std::string& node);

  ProcessLog log;
  ResumedCalls resumed;
  QueueSignal queueSignal;
  ClaimerSlot claimer;
  CompletionNotifier watch;
  test::CountingDeliveries deliveries;
  JobService jobs;
  LaterSubmissions later;
  RunReports reports;
  RunningJobs running;
  WorkerPools pools;
  NodeLife life;
  WorkerSupervisor supervisor;
  DeferredInserts inserts;
  Dispatcher dispatcher;
  test::CallingSweepListener swept;
  Sweeper sweeper;
  std::deque<WaitingCall> calls;
};

/// Starts and ends the processes. A dead process ends its workers.
class Machine {
 public:
  explicit Machine(World& world) : world_(world) {}

  /// Opens the storage like Application at its start: jobs of a dead process go back into the queue before the first
  /// claim.
  void open();
  /// Begins another life of the node; the workers go on.
  void beginLife();
  /// Stops in order, without new claims, with the running jobs back in the queue; then starts again.
  void restart();
  /// Starts again after a power cut; does nothing without a cut.
  void recover();
  /// Ensures that the last power cut has come or will not come, even a cut during the checkpoint after the last commit.
  void endCrashes();

  Process& process() { return *process_; }
  LocalWorkers& workers() { return *workers_; }

 private:
  void closeAfterCrash();
  /// Asks for the jobs at risk in the last loss of power: an end on the disk stays.
  void askForUndone();
  void wakeUpAtAnotherTime();

  World& world_;
  std::unique_ptr<LocalWorkers> workers_;
  std::unique_ptr<Process> process_;
  int processes_ = 0;
  FormerEnd formerEnd_ = FormerEnd::process;
  Instant furthest_{};  // furthest time of any clock
};

}  // namespace jobq::model

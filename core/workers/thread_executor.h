// The executor with a thread for each worker. Each worker has a handler of its own.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/workers/run/deadline_timer.h"
#include "core/workers/run/executor.h"
#include "core/workers/run/running_jobs.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class DeferredInsert;
class DeferredInserts;
class RunReports;
class SecretBox;

/// Outlives every worker thread except those abandoned by stop().
class ThreadExecutor final : public Executor {
 public:
  /// All members outlive the executor.
  struct Deps {
    RunReports& reports;
    Storage& storage;
    RunningJobs& running;
    DeadlineTimer& deadlines;
    const SecretBox& secrets;
    DeferredInserts& inserts;
    Clock& clock;
    Log& log;
  };
  explicit ThreadExecutor(const Deps& deps) : deps_(deps) {}
  ~ThreadExecutor() override { stop(Millis(0)); }

  void startWorker(const EndpointPtr& endpoint, const ReleasePtr& release, const WorkerId& worker,
                   WorkerEvents& events) override;
  void assign(ClaimedJob job) override;
  void assignUnstored(ClaimedJob job, const std::shared_ptr<DeferredInsert>& insert) override;
  void stopWorker(const WorkerId& worker) override;

  /// Wakes a stop() waiting for running jobs. Called after the stop token of a job has fired, because stop() does not
  /// wait for a stopped job. Any thread.
  void wakeDrain();

  /// Gives running jobs the time `drainTime` to finish. Stops the rest, waits for the handlers, for the longest
  /// stopGrace of the endpoints, and returns each job to the queue after the end of the handler. Returns the number of
  /// abandoned threads, whose handlers have not ended; above 0 the process has to end with _exit.
  std::size_t stop(Millis drainTime);

 private:
  class Worker;
  /// The job of a worker that still runs.
  struct Unfinished {
    std::shared_ptr<Worker> worker;
    LeaseRef lease;
  };

  void reap(const WorkerId& gone);
  /// Waits for the end of all workers. Returns false if a worker still runs at the deadline.
  bool awaitAllEnded(Instant deadline);
  void drain(Instant deadline);
  void stopUnfinishedWorkers();
  std::vector<Unfinished> abandonJobs(Millis& grace);
  void moveEndedJobs(std::vector<Unfinished>& rest, std::map<EndpointId, std::vector<LeaseRef>>& ended, bool all);
  void awaitEndOf(const std::vector<Unfinished>& rest, Instant deadline);
  bool release(std::map<EndpointId, std::vector<LeaseRef>>& jobs);

  const Deps deps_;
  Mutex mutex_;
  Condition changed_;
  std::map<WorkerId, std::shared_ptr<Worker>> workers_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq

// Room 8, the thread kind: a worker is a thread with its own handler.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/workers/deadline_timer.h"
#include "core/workers/executor.h"
#include "core/workers/running_jobs.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class JobService;
class SecretBox;

/// Outlives every worker thread but those that stop() had to abandon.
class ThreadExecutor final : public Executor {
 public:
  struct Deps {
    JobService& jobs;
    Storage& storage;
    RunningJobs& running;
    DeadlineTimer& deadlines;
    const SecretBox& secrets;
    Clock& clock;
    Log& log;
  };
  explicit ThreadExecutor(const Deps& deps) : deps_(deps) {}
  ~ThreadExecutor() override { stop(Millis(0)); }

  void startWorker(const EndpointPtr& endpoint, const ReleasePtr& release, const WorkerId& worker,
                   WorkerEvents& events) override;
  void assign(ClaimedJob job) override;
  void stopWorker(const WorkerId& worker) override;

  /// Called after the stop token of a job has fired: a stop() that waits for that job waits no longer.
  void noticeStopped();

  /// Running jobs get `drain` to finish. The rest is told to stop, goes back in line, and gets its endpoint's stopGrace
  /// to end. Returns the number of threads that did not: they are abandoned, and the process has to end with _exit.
  std::size_t stop(Millis drain);

 private:
  class Worker;

  void reap();
  bool awaitAllEnded(Instant deadline);
  void drain(Instant deadline);
  void stopRest();
  bool release(std::map<EndpointId, std::vector<LeaseRef>>& jobs);

  const Deps deps_;
  Mutex mutex_;
  Condition ended_;
  std::map<WorkerId, std::shared_ptr<Worker>> workers_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq

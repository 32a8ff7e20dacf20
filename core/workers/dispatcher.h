// Room 7 (dispatch): who has a free slot? One thread claims jobs in batches for all workers that are free, on all
// endpoints at once, and keeps the number of workers between workersMin and workersMax: more as the endpoint's scaler
// wishes (scaler.h), one less when one was idle for the endpoint's idleTimeout; workers of an old release are replaced
// (worker_pool.h). A caller who waits for its job may
// claim on its own thread when a worker is free (QueueSignal::ringAndServe): whoever claims reserves the workers first.
// The thread's duties take turns: each look performs every one of them once, with at most 64 claims for an endpoint, so
// that a flood at one endpoint delays neither the first job of another nor a release.
// A worker whose handler goes on past the endpoint's stopGrace after it was told to stop is stuck: its slot is
// replaced, for at most maxStuck of them; every further one keeps its slot, until the endpoint has none left to claim
// with.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/service.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/workers/executor.h"
#include "core/workers/running_jobs.h"
#include "core/workers/worker_pool.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "jobq/worker_store.h"

namespace jobq {

class QueueSignal;

class Dispatcher final : public Service, private WorkerEvents {
 public:
  struct Deps {
    Storage& storage;
    QueueSignal& queueSignal;
    Executor& executor;
    RunningJobs& running;
    Clock& clock;
    Log& log;
  };
  Dispatcher(const Deps& deps, std::string node, const std::vector<EndpointPtr>& endpoints);
  ~Dispatcher() override { stop(); }

  void start() override;

  /// No job is claimed and no worker hired afterwards; workers go on with what they have, but for the jobs of retired
  /// endpoints, which are told to stop.
  void stop() override;

  /// What the thread does each time: looks, if it was woken or it is time to; says whether it did. For whoever drives
  /// the dispatcher instead of calling start().
  bool runPassIfDue();

  /// Fires the stop token of that attempt, if it runs here; its handler has the endpoint's stopGrace to end. Any
  /// thread.
  void stopRun(const LeaseRef& lease);

  /// The endpoint came, or has changed: from now on its jobs run here under these rules. Any thread.
  void setEndpoint(const EndpointPtr& now);

  /// The endpoint is gone: its jobs are stopped, its workers leave. Any thread.
  void retire(const EndpointId& endpoint);

  /// Nobody works for the endpoint any more, but handlers that ignore their stop token. Any thread.
  bool hasLeft(const EndpointId& endpoint) const;

  /// This node's workers at the moment. Any thread.
  WorkerCounts counts(const EndpointId& endpoint) const;

  /// This node's workers one by one, and how far the endpoint's release has come. Any thread.
  WorkerPoolView view(const EndpointId& endpoint) const;

  /// How many workers each template has here. Any thread.
  std::map<std::string, std::size_t> workersOfTemplates() const;

  /// Why a job of the endpoint waits: no_workers, workers_busy, starting, worker_crashing or paused. Any thread.
  std::string_view waitReason(const Endpoint& endpoint, bool lowPriority) const;

 private:
  void workerReady(const EndpointId& endpoint, const WorkerId& worker) override;
  void workerGone(const EndpointId& endpoint, const WorkerId& worker, const std::string& failure) override;

  void loop();
  void runPassAndPlan();
  bool runPass();
  void claimForCaller(const EndpointId& endpoint);
  std::vector<ClaimWant> reserveWorkers(const EndpointId* only);
  void releaseReservations(const std::vector<ClaimWant>& wants, const std::vector<ClaimedJob>& jobs);
  bool claimBatch(const std::vector<ClaimWant>& wants);
  void executeJobs(std::vector<ClaimedJob> jobs);
  void releaseJob(const LeaseRef& lease);
  void noticeStuck();
  void stopIdleWorkers();
  void startWhereNeeded();
  void rollReleases();
  bool rollOne(const EndpointId& endpoint);
  void stopRetired();
  bool mayWantMore(const WorkerPool& pool) const JOBQ_REQUIRES(mutex_);
  std::size_t wanted(const EndpointId& endpoint);
  void startWorker(const EndpointId& endpoint, const WorkerPool::Step& why);
  Instant nextPass() const;

  const Deps deps_;
  const std::string node_;

  mutable Mutex mutex_;
  std::map<EndpointId, WorkerPool> pools_ JOBQ_GUARDED_BY(mutex_);
  int claimingCallers_ JOBQ_GUARDED_BY(mutex_) = 0;  // callers who claim on their own thread
  Condition callersDone_;
  std::atomic<Instant> nextPassAt_{};  // when the dispatcher looks even if nobody wakes it
  std::uint64_t workersStarted_ = 0;   // the dispatcher's thread
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace jobq

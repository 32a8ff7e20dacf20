// Brings queued jobs and idle workers together. The dispatcher thread claims jobs in batches for all idle workers of
// all endpoints and keeps the number of workers of an endpoint between workersMin and workersMax. The scaler
// (`core/workers/scaler.h`) asks for more workers; a worker leaves after the endpoint's idleTimeout without a job;
// workers of an old release are replaced (`core/workers/worker_pool.h`). A caller waiting for its job may claim on its
// own thread when a worker is idle (QueueSignal::notifyAndClaim). Every claim reserves the workers first.
// Each pass performs every duty once, with at most 64 claims for an endpoint, so that a flood at an endpoint delays
// neither the first job of another endpoint nor a release.
// A worker is stuck if its handler still runs stopGrace after the stop. Its slot is replaced, for at most maxStuck
// workers of the endpoint. Every further stuck worker keeps its slot, so an endpoint can run out of workers.
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

/// Owner of the dispatcher thread and of all worker pools of this node.
class Dispatcher final : public Service, private WorkerEvents {
 public:
  /// Everything here outlives the dispatcher.
  struct Deps {
    Storage& storage;
    QueueSignal& queueSignal;
    Executor& executor;
    RunningJobs& running;
    Clock& clock;
    Log& log;
  };
  /// `node` is the name of this process in worker ids. `endpoints` are the endpoints to serve from the start. The
  /// constructor sets the claimer of `queueSignal`.
  Dispatcher(const Deps& deps, std::string node, const std::vector<EndpointPtr>& endpoints);
  ~Dispatcher() override { stop(); }

  /// Starts the dispatcher thread, unless stop() was called.
  void start() override;

  /// Blocks until the thread has ended and no caller claims. No job is claimed and no worker is started afterwards.
  /// Workers finish their present jobs; only the jobs of retired endpoints are told to stop.
  void stop() override;

  /// Performs a pass if a notification came or the time of the next pass has come. Returns true if a pass was made.
  /// Simulations drive the dispatcher by this function instead of start().
  bool runPassIfDue();

  /// Fires the stop token of the attempt if the attempt runs here. The handler has the endpoint's stopGrace to end. Any
  /// thread.
  void stopRun(const LeaseRef& lease);

  /// Adds the endpoint or changes its definition. The pool follows the new definition; present workers keep
  /// theirs until a release replaces them. An endpoint of remote workers is ignored unless a pool of the endpoint
  /// exists here. Any thread.
  void setEndpoint(const EndpointPtr& now);

  /// Removes the endpoint: the jobs are stopped and the workers leave. Any thread.
  void retire(const EndpointId& endpoint);

  /// Returns true if no worker of the endpoint is left except leaving and stuck ones. Any thread.
  bool hasLeft(const EndpointId& endpoint) const;

  /// Returns the present numbers of this node's workers by state. Any thread.
  WorkerCounts counts(const EndpointId& endpoint) const;

  /// Returns each of this node's workers and the progress of the endpoint's release. Any thread.
  WorkerPoolView view(const EndpointId& endpoint) const;

  /// Returns the number of workers of each template on this node. Any thread.
  std::map<std::string, std::size_t> workersOfTemplates() const;

  /// Returns the reason why a job of the endpoint waits: no_workers, workers_busy, starting, worker_crashing or paused.
  /// Any thread.
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
  int claimingCallers_ JOBQ_GUARDED_BY(mutex_) = 0;  // callers inside claimForCaller()
  Condition callersDone_;
  std::atomic<Instant> nextPassAt_{};  // when the thread makes a pass without a notification
  std::uint64_t workersStarted_ = 0;   // used by the dispatcher thread
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace jobq

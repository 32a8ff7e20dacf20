// Gives the job of a waiting caller to an idle worker before the storage has the job (core/jobs/deferred_insert.h): a
// part of dispatch that reads no queue.
#pragma once

#include <memory>
#include <vector>

#include "core/jobs/claimer.h"
#include "core/jobs/deferred_insert.h"
#include "core/jobs/queue_signal.h"
#include "core/workers/deferred_inserts.h"
#include "core/workers/node/node_life.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/pool/worker_supervisor.h"
#include "core/workers/run/executor.h"
#include "core/workers/run/running_jobs.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/log.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread.
class EarlyRuns {
 public:
  /// The objects of dispatch, for the dispatcher too. All members outlive the object.
  struct Deps {
    WorkerPools& pools;
    WorkerSupervisor& supervisor;
    Storage& storage;
    QueueSignal& queueSignal;
    ClaimerSlot& claimer;
    Executor& executor;
    RunningJobs& running;
    DeferredInserts& inserts;
    const NodeLife& node;
    Clock& clock;
    Log& log;
  };
  explicit EarlyRuns(const Deps& deps) : deps_(deps) {}

  /// Begins the run of the job, as Claimer::runForCaller() says.
  std::shared_ptr<DeferredInsert> begin(const JobSpec& job, const QueuePolicy& policy);

 private:
  void freeWorkers(const std::vector<ClaimWant>& wants);
  bool discard(DeferredInsert& insert) noexcept;
  bool assign(ClaimedJob job, const std::shared_ptr<DeferredInsert>& insert);

  const Deps deps_;
};

/// Returns a job to the queue for which the worker had no memory, and writes to the log. Without the return the job
/// would stay claimed without a worker.
void releaseWithoutWorker(Storage& storage, Log& logger, const LeaseRef& lease) noexcept;

}  // namespace jobq

// Brings queued jobs and idle workers together: the claiming half of dispatch. The dispatcher thread claims jobs in
// batches for all idle workers of all endpoints. A caller waiting for its job may claim on its own thread when a worker
// is idle (Claimer::claimForCaller), or insert and claim its job in one step (Claimer::insertForCaller), or give
// its job to the worker before the insert (Claimer::runForCaller). A claim reserves idle workers first
// (`core/workers/pool/worker_pools.h`); a worker that finishes its job claims the next job with its report
// (finishAndClaim) and stays busy. Each pass performs every task once, with at most 64 claims for an endpoint, so that
// a flood at an endpoint delays neither the first job of another endpoint nor a release. The tasks that start and stop
// workers belong to WorkerSupervisor (`core/workers/pool/worker_supervisor.h`).
//
// A storage behind a connection may not answer a claim (`OutcomeUnknown` in `jobq/error.h`). The workers of such a
// claim stay reserved, and the dispatcher thread asks for the jobs of the claim in each pass, until the storage
// answers. A fenced node (`core/workers/lease_keeper.h`) claims nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/outside_threads.h"
#include "core/base/service.h"
#include "core/jobs/claimer.h"
#include "core/jobs/deferred_insert.h"
#include "core/jobs/queue_signal.h"
#include "core/workers/deferred_inserts.h"
#include "core/workers/early_runs.h"
#include "core/workers/node/node_life.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/pool/worker_supervisor.h"
#include "core/workers/run/executor.h"
#include "core/workers/run/running_jobs.h"
#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/lease_store.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Owner of the dispatcher thread.
class Dispatcher final : public Service, private Claimer {
 public:
  /// All members outlive the dispatcher.
  using Deps = EarlyRuns::Deps;
  /// Binds itself to `claimer`.
  explicit Dispatcher(const Deps& deps);
  ~Dispatcher() override { stop(); }

  /// Starts the dispatcher thread, unless stop() was called.
  void start() override;

  /// Blocks until the thread has ended and no caller claims. No job is claimed and no worker is started afterwards.
  /// Workers finish their current jobs; only the jobs of retired endpoints are told to stop.
  void stop() override;

  /// Performs a pass if a notification came or the time of the next pass has come. Returns true if a pass was made.
  /// Simulations drive the dispatcher by this function instead of start().
  bool runPassIfDue();

 private:
  /// A call of LeaseStore::claim(). The workers in `wants` are reserved.
  struct Claim {
    std::vector<ClaimWant> wants;
    CallId id = 0;
    Holder holder;
  };

  /// The result of one or more claims.
  struct Found {
    bool hasJobs = false;
    bool leavesJobs = false;  ///< jobs are still queued, because there was no room for their inputs
  };

  void runPassAndPlan();
  Found runPass();
  void claimForCaller(const EndpointId& endpoint) override;
  std::optional<InsertResult> insertForCaller(JobSpec& job, const QueuePolicy& policy,
                                              const std::optional<Idempotency>& idempotency) override;
  std::shared_ptr<DeferredInsert> runForCaller(const JobSpec& job, const QueuePolicy& policy) override;
  std::optional<FinishedRun> finishAndClaim(const ClaimedJob& job, const EndedAttempt& end, bool isTold) override;
  void acceptOffered(const Claim& claim, std::vector<ClaimedJob> jobs);
  Found claimBatch(std::vector<ClaimWant> wants);
  void claimWithin(std::vector<ClaimWant> wants, std::uint64_t mostBytes, Found& found);
  void keepUnanswered(std::list<Claim>& claims);
  ClaimResult claimJobs(const Claim& claim, std::uint64_t mostBytes);
  std::vector<ClaimedJob> readJobs(const Claim& claim);
  bool acceptJobs(const std::vector<ClaimWant>& wants, std::vector<ClaimedJob> jobs);
  void askForUnanswered();
  void giveUp(const Claim& claim);
  void giveUpUnanswered();
  void assignJobs(std::vector<ClaimedJob> jobs);

  const Deps deps_;
  CallIds callIds_;
  EarlyRuns earlyRuns_;

  OutsideThreads callers_;  // threads inside the functions of Claimer
  Mutex mutex_;
  std::list<Claim> unanswered_ JOBQ_GUARDED_BY(mutex_);  // in the order of the last questions
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace jobq

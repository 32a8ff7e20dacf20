#include "core/workers/early_runs.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include "core/jobs/returned_jobs.h"

namespace jobq {
namespace {

/// Largest input of a job that runs before the insert, because such a job has two copies of the input.
constexpr std::size_t kLargestInput = 64UL << 10;

// Returns the job in the form of a claim made now.
ClaimedJob firstAttempt(const JobSpec& job, const WorkerId& worker, Instant now) {
  ClaimedJob claimed;
  claimed.lease = {job.id, 1};
  claimed.endpoint = job.endpoint;
  claimed.worker = worker;
  claimed.input = job.input;
  claimed.webhook = job.webhook;
  claimed.s3Config = job.s3Config;
  claimed.policy = job.policy;
  claimed.submittedAt = claimed.startedAt = now;
  claimed.runsFor = std::min(job.policy.executionTimeout, job.policy.ttl);
  return claimed;
}

}  // namespace

std::shared_ptr<DeferredInsert> EarlyRuns::begin(const JobSpec& job, const QueuePolicy& policy) {
  // A set signal: other jobs may wait, and come first.
  if (!deps_.inserts.mayDefer(job.endpoint) || deps_.queueSignal.isSet(job.endpoint)) return nullptr;
  if (job.input.size() > kLargestInput || !deps_.node.mayClaim()) return nullptr;
  // A stop between the reservation and the begin of the run is kept (RunningJobs::Claiming).
  const RunningJobs::Claiming claiming(deps_.running);
  const auto wants = deps_.pools.reserveWorkers({&job.endpoint, 1, true});
  if (wants.empty()) return nullptr;
  const WorkerId& worker = wants.front().workers.front();
  if (outlivesNode(worker)) {
    deps_.inserts.noteRun(job.endpoint, false);  // the endpoint has changed to remote workers
    freeWorkers(wants);
    return nullptr;
  }
  std::shared_ptr<DeferredInsert> insert;
  std::vector<ClaimedJob> jobs;
  try {
    const Begun run{worker, deps_.node.holder()};
    insert = std::make_shared<DeferredInsert>(deps_.storage, deps_.clock, job, policy, run);
    jobs.push_back(firstAttempt(job, worker, deps_.clock.now()));
    deps_.inserts.watch(insert);
    deps_.pools.concludeReservations(wants, jobs);
  } catch (...) {  // no memory
    if (insert) (void)discard(*insert);
    freeWorkers(wants);
    throw;
  }
  return assign(std::move(jobs.front()), insert) ? insert : nullptr;
}

// Frees reserved workers. A job may have come meanwhile, with a claim that found no idle worker.
void EarlyRuns::freeWorkers(const std::vector<ClaimWant>& wants) {
  deps_.pools.concludeReservations(wants, {});
  if (deps_.queueSignal.isSet(wants.front().endpoint)) deps_.queueSignal.wake();
}

// Returns false if the job does not run and the caller has to store the job.
bool EarlyRuns::assign(ClaimedJob job, const std::shared_ptr<DeferredInsert>& insert) {
  const WorkerId worker = job.worker;
  try {
    deps_.executor.assignUnstored(std::move(job), insert);
    return true;
  } catch (const std::exception& error) {  // no memory, or a failing storage
    deps_.log.write(LogLevel::error, "dispatcher.memory", error.what());
  }
  const bool isStored = discard(*insert);
  try {
    deps_.supervisor.workerReady(insert->job().endpoint, worker);
  } catch (const std::exception& error) {
    deps_.log.write(LogLevel::error, "dispatcher.memory", error.what());
  }
  return isStored;
}

// Returns true if the storage has the job, which is now in the queue.
bool EarlyRuns::discard(DeferredInsert& insert) noexcept {
  insert.discard();
  if (insert.state() != DeferredInsert::State::stored) return false;
  releaseWithoutWorker(deps_.storage, deps_.log, {insert.job().id, 1});
  deps_.queueSignal.rearm(insert.job().endpoint);
  return true;
}

void releaseWithoutWorker(Storage& storage, Log& logger, const LeaseRef& lease) noexcept {
  const auto log = [&](const char* outcome) noexcept {
    try {
      logger.write(LogLevel::error, "dispatcher.memory", lease.job + outcome);
    } catch (...) {  // no memory for the text
      logger.write(LogLevel::error, "dispatcher.memory", outcome);
    }
  };
  try {
    releaseAll(storage.leases(), {&lease, 1});
    log(" was returned to the queue: no memory to hand it to its worker");
  } catch (...) {
    log(" stays IN_PROGRESS until its execution timeout: neither its worker nor the storage could take it");
  }
}

}  // namespace jobq

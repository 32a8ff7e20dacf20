#include "core/workers/pool/worker_supervisor.h"

#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "core/jobs/queue_signal.h"
#include "core/jobs/returned_jobs.h"

namespace jobq {
WorkerSupervisor::WorkerSupervisor(const Deps& deps, std::string prefix) : deps_(deps), prefix_(std::move(prefix)) {}

void WorkerSupervisor::workerReady(const EndpointId& endpoint, const WorkerId& worker) {
  const WorkerPools::ReadyResult result = deps_.pools.recordReady(endpoint, worker);
  // The planned pass is read after the report is recorded: a pass planned before that may not know of the report.
  const bool early = result.rolling || result.idleUntil < nextPassAt_.load();
  if (!result.stays) deps_.executor.stopWorker(worker);
  if (early || (result.stays && deps_.queueSignal.isSet(endpoint))) deps_.queueSignal.wake();
}

void WorkerSupervisor::workerGone(const EndpointId& endpoint, const WorkerId& worker, const WorkerEnd& end) {
  const std::optional<bool> halted = deps_.pools.recordGone(endpoint, worker, end);
  if (!halted) return;
  if (!end) {
    deps_.log.write(LogLevel::error, "worker.failed", "a worker of " + endpoint + " failed: " + end.failure().reason);
  }
  if (*halted) {
    deps_.log.write(LogLevel::error, "release.halted",
                    "the newest version of " + endpoint + " does not start: its workers keep the version before");
  }
  deps_.queueSignal.wake();
}

void WorkerSupervisor::stopRun(const LeaseRef& lease) {
  // A thread about to run the attempt sees the stop (RunningJobs::Claiming) and does not begin.
  deps_.running.stop(lease);
  const std::optional<Instant> stuckFrom = deps_.pools.beginStopGrace(lease);
  if (stuckFrom && *stuckFrom < nextPassAt_.load()) deps_.queueSignal.wake();
}

void WorkerSupervisor::stopEndedRuns() {
  const std::vector<LeaseRef> leases = deps_.running.leases();
  const std::vector<LeaseState> states = deps_.storage.leases().states(leases);
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (states[i] != LeaseState::held) stopRun(leases[i]);
  }
}

void WorkerSupervisor::noticeStuck() {
  for (const StuckWorker& stuck : deps_.pools.markStuck()) {
    deps_.log.write(LogLevel::error, "worker.stuck",
                    "worker " + stuck.worker + " of " + stuck.endpoint + " ignores the stop of " + stuck.job +
                        ": its slot is replaced, and its thread continues until the handler returns");
  }
}

void WorkerSupervisor::rollReleases() {
  for (const WorkerPools::RollingPool& pool : deps_.pools.rollingPools()) {
    while (!stopping_ && rollOne(pool.endpoint)) {
    }
  }
}

// Returns true if there may be a further step at once.
bool WorkerSupervisor::rollOne(const EndpointId& id) {
  const WorkerPool::Step step = deps_.pools.nextStep(id);
  for (const WorkerId& worker : step.stoppedWorkers) deps_.executor.stopWorker(worker);
  // The stopped jobs go back to the queue, for the removal of the endpoint. A later result of the handler is dropped.
  deps_.running.store(step.stopped);
  releaseAll(deps_.storage.leases(), step.stopped);
  for (const LeaseRef& lease : step.stopped) stopRun(lease);
  if (step.startWorker) startWorker(id, step);
  return step.startWorker;
}

// An endpoint may be deleted during the shutdown, after the last pass of the dispatcher thread. No caller can read a
// result of such an endpoint, so the shutdown must not wait for the running jobs.
void WorkerSupervisor::stopRetired() {
  for (const WorkerPools::RollingPool& pool : deps_.pools.rollingPools()) {
    if (!pool.retiring) continue;
    try {
      rollOne(pool.endpoint);
    } catch (const std::exception& error) {
      deps_.log.write(
          LogLevel::error, "dispatcher.storage",
          "the jobs of the deleted endpoint " + pool.endpoint + " run until the drain ends: " + error.what());
    }
  }
}

void WorkerSupervisor::stopIdleWorkers() {
  for (const WorkerId& worker : deps_.pools.markIdleLeaving()) deps_.executor.stopWorker(worker);
}

void WorkerSupervisor::startWhereNeeded() {
  for (const EndpointId& id : deps_.pools.beginScaling()) {
    for (std::size_t number = workersMissing(id); number > 0 && !stopping_; --number) startWorker(id, {});
  }
}

// A low-priority job does not trigger scaling (core/http/API.md, "Policy"), so a normal job that comes after the count
// is news. If the count fails, the signal stays set for the next pass.
EndpointCounts WorkerSupervisor::countQueue(const EndpointId& id) {
  deps_.queueSignal.beginCount(id);
  const EndpointCounts jobs = deps_.storage.jobs().counts(id);
  deps_.queueSignal.endCount(id, jobs.inQueue > jobs.inQueueLow, jobs.inQueueLow > 0);
  return jobs;
}

// Returns the number of workers that the endpoint is short of.
std::size_t WorkerSupervisor::workersMissing(const EndpointId& id) {
  // The view comes before the count: a job claimed in between must not count as queued and as running.
  const ScalerView view = deps_.pools.scalerView(id);
  const EndpointCounts jobs = deps_.queueSignal.isSet(id) ? countQueue(id) : EndpointCounts{};
  const std::size_t missing = deps_.pools.workersMissing(id, view, jobs, 0);
  if (missing == 0 || !deps_.storage.leaseLife()) return missing;
  // A node whose part has become smaller keeps its workers until their jobs end.
  const WorkerCounts others = deps_.storage.nodes().count(id, deps_.node.name());
  return deps_.pools.workersMissing(id, view, jobs, others.initializing + others.idle + others.running);
}

void WorkerSupervisor::startWorker(const EndpointId& id, const WorkerPool::Step& why) {
  const WorkerId worker = prefix_ + "-" + std::to_string(++workersStarted_);
  const auto made = deps_.pools.addWorker(id, worker, why);
  if (!made) return;
  try {
    deps_.executor.startWorker(made->endpoint, made->release, worker, *this);
  } catch (const std::exception& error) {  // no thread or no memory: the slot must become free again
    workerGone(id, worker, failureOf(error));
  }
}

}  // namespace jobq

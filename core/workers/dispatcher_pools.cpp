// The pool management of the dispatcher: numbers of workers and their releases.
#include <algorithm>
#include <exception>

#include "core/jobs/queue_signal.h"
#include "core/workers/dispatcher.h"
#include "core/workers/scaler.h"

namespace jobq {

// Marks and logs workers whose handlers still run stopGrace after the stop. WorkerPool::slots() no longer counts up to
// maxStuck of such workers (core/decisions/workers.md).
void Dispatcher::noticeStuck() {
  const Instant now = deps_.clock.now();
  std::vector<std::string> found;
  {
    Lock lock(mutex_);
    for (auto& [id, pool] : pools_) {
      for (auto& [worker, info] : pool.workers) {
        if (info.state != WorkerState::busy || info.stuckFrom > now) continue;
        info.state = WorkerState::stuck;
        found.push_back("worker " + worker + " of " + id + " ignores the stop of " + info.lease.job +
                        ": its slot is replaced, and its thread continues until the handler returns");
      }
    }
  }
  for (const std::string& line : found) deps_.log.write(LogLevel::error, "worker.stuck", line);
}

void Dispatcher::stopIdleWorkers() {
  const Instant now = deps_.clock.now();
  std::vector<WorkerId> leaving;
  {
    Lock lock(mutex_);
    for (auto& [id, pool] : pools_) {
      std::size_t staying = pool.slots();
      for (auto& [worker, info] : pool.workers) {
        const bool tooMany = staying > pool.endpoint->workersMax;  // workersMax was lowered
        if (staying <= pool.endpoint->workersMin && !tooMany) break;
        if (info.state != WorkerState::idle) continue;
        if (!tooMany && info.since + pool.endpoint->idleTimeout > now) continue;
        if (!tooMany && deps_.queueSignal.isSet(id) && !pool.endpoint->paused) continue;
        info.state = WorkerState::leaving;
        leaving.push_back(worker);
        --staying;
      }
    }
  }
  for (const WorkerId& worker : leaving) deps_.executor.stopWorker(worker);
}

void Dispatcher::rollReleases() {
  std::vector<EndpointId> ids;
  {
    Lock lock(mutex_);
    for (auto at = pools_.begin(); at != pools_.end();) {
      const WorkerPool& pool = at->second;
      if (pool.workers.empty() && (pool.retiring || !pool.target())) {
        at = pools_.erase(at);
        continue;
      }
      if (pool.isRolling()) ids.push_back(at->first);
      ++at;
    }
  }
  for (const EndpointId& id : ids) {
    while (!stopping_ && rollOne(id)) {
    }
  }
}

// Returns true if there may be a further step at once.
bool Dispatcher::rollOne(const EndpointId& id) {
  WorkerPool::Step step;
  {
    Lock lock(mutex_);
    const auto pool = pools_.find(id);
    if (pool == pools_.end()) return false;
    step = pool->second.nextStep();
  }
  for (const WorkerId& worker : step.stoppedWorkers) deps_.executor.stopWorker(worker);
  // The stopped jobs go back to the queue, for the removal of the endpoint. A later result of the handler is dropped.
  if (!step.stopped.empty()) deps_.storage.leases().release(step.stopped);
  for (const LeaseRef& lease : step.stopped) stopRun(lease);
  if (step.startWorker) startWorker(id, step);
  return step.startWorker;
}

// An endpoint may be deleted during the shutdown, after the last pass of the dispatcher thread. No caller can read a
// result of such an endpoint, so the shutdown must not wait for the running jobs.
void Dispatcher::stopRetired() {
  std::vector<EndpointId> ids;
  {
    Lock lock(mutex_);
    for (const auto& [id, pool] : pools_) {
      if (pool.retiring) ids.push_back(id);
    }
  }
  for (const EndpointId& id : ids) {
    try {
      rollOne(id);
    } catch (const std::exception& error) {
      deps_.log.write(LogLevel::error, "dispatcher.storage",
                      "the jobs of the deleted endpoint " + id + " run until the drain ends: " + error.what());
    }
  }
}

void Dispatcher::startWhereNeeded() {
  std::vector<EndpointId> ids;
  {
    Lock lock(mutex_);
    for (auto& [id, pool] : pools_) {
      pool.scaleAt = Instant::max();
      if (mayWantMore(pool)) ids.push_back(id);
    }
  }
  for (const EndpointId& id : ids) {
    for (std::size_t missing = wanted(id); missing > 0 && !stopping_; --missing) startWorker(id, {});
  }
}

// Decides as far as possible without a request to the storage.
bool Dispatcher::mayWantMore(const WorkerPool& pool) const {
  const std::size_t size = pool.slots();
  if (!pool.target() || size >= pool.endpoint->workersMax || deps_.clock.now() < pool.startAfter) return false;
  if (size < pool.endpoint->workersMin) return true;
  return !pool.endpoint->paused && deps_.queueSignal.isSet(pool.endpoint->id);
}

// Returns the number of workers that the endpoint is short of.
std::size_t Dispatcher::wanted(const EndpointId& id) {
  // A low-priority job does not trigger scaling (core/http/API.md, "Policy"). The flag of normal jobs is cleared before
  // the count, so a normal job that comes after the count sets the flag again.
  const bool rings = deps_.queueSignal.isSet(id);
  if (rings) deps_.queueSignal.rearm(id, true);
  const EndpointCounts jobs = rings ? deps_.storage.jobs().counts(id) : EndpointCounts{};
  if (jobs.inQueue > jobs.inQueueLow) deps_.queueSignal.rearm(id);
  const Instant now = deps_.clock.now();
  Lock lock(mutex_);
  const auto found = pools_.find(id);
  if (found == pools_.end()) return 0;
  WorkerPool& pool = found->second;
  const auto narrow = [](std::size_t number) { return static_cast<std::uint32_t>(number); };
  ScalerView view{pool.endpoint->scaling, pool.endpoint->workersMin, pool.endpoint->workersMax, narrow(pool.slots())};
  view.coming =
      narrow(pool.count(WorkerState::idle) + pool.count(WorkerState::reserved) + pool.count(WorkerState::starting));
  for (const auto& [worker, info] : pool.workers) {
    if (info.state == WorkerState::busy) ++(info.lowPriority ? view.busyLow : view.busy);
  }
  if (!pool.endpoint->paused) view.waiting = jobs.inQueue - std::min(jobs.inQueueLow, jobs.inQueue);
  if (jobs.headQueuedAt) view.headWait = now - *jobs.headQueuedAt;
  const ScalerWish wish = scale(view);
  if (wish.again) pool.scaleAt = now + *wish.again;
  return wish.workers > view.workers ? wish.workers - view.workers : 0;
}

void Dispatcher::startWorker(const EndpointId& id, const WorkerPool::Step& why) {
  const WorkerId worker = node_ + "-" + std::to_string(++workersStarted_);
  EndpointPtr endpoint;
  ReleasePtr release;
  {
    Lock lock(mutex_);
    const auto pool = pools_.find(id);
    if (pool == pools_.end() || !pool->second.target()) return;
    endpoint = pool->second.endpoint;
    release = pool->second.target();
    const Instant now = deps_.clock.now();
    WorkerInfo info{WorkerState::starting, now, now, release};
    info.replaces = why.replaces;
    info.surge = why.surge;
    pool->second.workers[worker] = std::move(info);
  }
  try {
    deps_.executor.startWorker(endpoint, release, worker, *this);
  } catch (const std::exception& error) {  // no thread or no memory: the slot must become free again
    workerGone(id, worker, error.what());
  }
}

// Wakes the dispatcher thread only for a reason: a job for the worker, the next step of a release, or the end of an
// idle time before the next pass.
void Dispatcher::workerReady(const EndpointId& endpoint, const WorkerId& worker) {
  const Instant now = deps_.clock.now();
  bool early = false;
  bool stays = false;
  {
    Lock lock(mutex_);
    WorkerPool& pool = pools_.at(endpoint);
    stays = pool.takeReady(worker, now);
    early = pool.isRolling() ||
            (pool.workers.size() > pool.endpoint->workersMin && now + pool.endpoint->idleTimeout < nextPassAt_.load());
  }
  if (!stays) deps_.executor.stopWorker(worker);
  if (early || (stays && deps_.queueSignal.isSet(endpoint))) deps_.queueSignal.wake();
}

void Dispatcher::workerGone(const EndpointId& endpoint, const WorkerId& worker, const std::string& failure) {
  bool halted = false;
  {
    Lock lock(mutex_);
    const auto pool = pools_.find(endpoint);
    if (pool == pools_.end()) return;
    const bool was = pool->second.halted;
    pool->second.takeGone(worker, failure, deps_.clock.now());
    halted = pool->second.halted && !was;
  }
  if (!failure.empty()) {
    deps_.log.write(LogLevel::error, "worker.failed", "a worker of " + endpoint + " failed: " + failure);
  }
  if (halted) {
    deps_.log.write(LogLevel::error, "release.halted",
                    "the newest version of " + endpoint + " does not start: its workers keep the version before");
  }
  deps_.queueSignal.wake();
}

void Dispatcher::setEndpoint(const EndpointPtr& now) {
  {
    Lock lock(mutex_);
    if (!now->release && !pools_.contains(now->id)) return;  // remote workers pull its jobs
    pools_[now->id].change(now);
  }
  deps_.queueSignal.addEndpoint(now->id);
  deps_.queueSignal.rearm(now->id);
  deps_.queueSignal.wake();
}

void Dispatcher::retire(const EndpointId& endpoint) {
  {
    Lock lock(mutex_);
    const auto pool = pools_.find(endpoint);
    if (pool == pools_.end()) return;
    pool->second.retiring = true;
  }
  deps_.queueSignal.wake();
}

bool Dispatcher::hasLeft(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  const auto pool = pools_.find(endpoint);
  if (pool == pools_.end()) return true;
  return pool->second.workers.size() ==
         pool->second.count(WorkerState::stuck) + pool->second.count(WorkerState::leaving);
}

Instant Dispatcher::nextPass() const {
  Instant next = Instant::max();
  const Instant now = deps_.clock.now();
  Lock lock(mutex_);
  for (const auto& [id, pool] : pools_) {
    if (pool.startAfter > now) next = std::min(next, pool.startAfter);
    next = std::min(next, pool.scaleAt);
    for (const auto& [worker, info] : pool.workers) {
      if (info.state == WorkerState::busy) next = std::min(next, info.stuckFrom);
    }
    if (pool.slots() <= pool.endpoint->workersMin) continue;
    for (const auto& [worker, info] : pool.workers) {
      if (info.state == WorkerState::idle) next = std::min(next, info.since + pool.endpoint->idleTimeout);
    }
  }
  return next;
}

WorkerCounts Dispatcher::counts(const EndpointId& endpoint) const {
  WorkerCounts counts;
  Lock lock(mutex_);
  const auto found = pools_.find(endpoint);
  if (found == pools_.end()) return counts;
  const WorkerPool& pool = found->second;
  const auto of = [&pool](WorkerState state) { return static_cast<std::uint32_t>(pool.count(state)); };
  counts.idle = of(WorkerState::idle) + of(WorkerState::reserved);
  counts.ready = counts.idle;
  counts.initializing = of(WorkerState::starting);
  counts.running = of(WorkerState::busy);
  counts.unhealthy = of(WorkerState::stuck);
  counts.throttled = deps_.clock.now() < pool.startAfter ? 1 : 0;
  return counts;
}

WorkerPoolView Dispatcher::view(const EndpointId& endpoint) const {
  WorkerPoolView view;
  Lock lock(mutex_);
  const auto found = pools_.find(endpoint);
  if (found == pools_.end()) return view;
  const WorkerPool& pool = found->second;
  for (const auto& [id, info] : pool.workers) {
    view.workers.push_back({id, nameOf(info.state), info.startedAt, info.release});
  }
  view.rolling = pool.isRolling();
  view.halted = pool.halted;
  view.fault = pool.fault;
  return view;
}

std::map<std::string, std::size_t> Dispatcher::workersOfTemplates() const {
  std::map<std::string, std::size_t> workers;
  Lock lock(mutex_);
  for (const auto& [id, pool] : pools_) {
    for (const auto& [worker, info] : pool.workers) {
      if (!info.release->templateId.empty()) ++workers[info.release->templateId];
    }
  }
  return workers;
}

std::string_view Dispatcher::waitReason(const Endpoint& endpoint, bool lowPriority) const {
  if (endpoint.paused) return "paused";
  Lock lock(mutex_);
  const auto found = pools_.find(endpoint.id);
  if (found == pools_.end() || endpoint.workersMax == 0) return "no_workers";
  const WorkerPool& pool = found->second;
  if (pool.count(WorkerState::busy) + pool.count(WorkerState::idle) + pool.count(WorkerState::reserved) > 0)
    return "workers_busy";
  if (pool.count(WorkerState::starting) > 0) return "starting";
  if (deps_.clock.now() < pool.startAfter || pool.count(WorkerState::stuck) > 0) return "worker_crashing";
  return lowPriority ? "no_workers" : "starting";
}

}  // namespace jobq

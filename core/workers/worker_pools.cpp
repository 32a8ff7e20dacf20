#include "core/workers/worker_pools.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/jobs/queue_signal.h"

namespace jobq {

WorkerPools::WorkerPools(const Deps& deps, const std::vector<EndpointPtr>& endpoints) : deps_(deps) {
  for (const EndpointPtr& endpoint : endpoints) setEndpoint(endpoint);
}

void WorkerPools::setEndpoint(const EndpointPtr& now) {
  {
    Lock lock(mutex_);
    const auto found = pools_.find(now->spec.id);
    if (found != pools_.end()) {
      found->second.change(now);
    } else if (now->release) {
      pools_.emplace(now->spec.id, WorkerPool(now));
    } else {
      return;  // no pool: its jobs wait for a release. Planned: remote workers take them
    }
  }
  deps_.queueSignal.addEndpoint(now->spec.id);
  deps_.queueSignal.rearm(now->spec.id);
  deps_.queueSignal.wake();
}

void WorkerPools::retire(const EndpointId& endpoint) {
  {
    Lock lock(mutex_);
    const auto pool = pools_.find(endpoint);
    if (pool == pools_.end()) return;
    pool->second.retire();
  }
  deps_.queueSignal.wake();
}

PoolStatus WorkerPools::status(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  const auto pool = pools_.find(endpoint);
  return pool == pools_.end() ? PoolStatus{} : pool->second.status(deps_.clock.now());
}

WorkerPoolView WorkerPools::view(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  const auto pool = pools_.find(endpoint);
  return pool == pools_.end() ? WorkerPoolView{} : pool->second.view();
}

std::map<std::string, std::size_t> WorkerPools::workersOfTemplates() const {
  std::map<std::string, std::size_t> workers;
  Lock lock(mutex_);
  for (const auto& [id, pool] : pools_) {
    for (const auto& [worker, info] : pool.workers().all()) {
      if (!info.release->templateId.empty()) ++workers[info.release->templateId];
    }
  }
  return workers;
}

std::vector<ClaimWant> WorkerPools::reserveWorkers(const EndpointId* only, std::size_t most) {
  std::vector<ClaimWant> wants;
  Lock lock(mutex_);
  auto at = only != nullptr ? pools_.find(*only) : pools_.begin();
  for (; at != pools_.end(); at = only != nullptr ? pools_.end() : std::next(at)) {
    auto& [id, pool] = *at;
    if (pool.endpoint()->spec.paused || pool.isRetiring() || !deps_.queueSignal.isSet(id)) continue;
    std::vector<WorkerId> workers = pool.workers().reserve(most);
    if (!workers.empty()) wants.push_back({id, std::move(workers)});
  }
  return wants;
}

void WorkerPools::concludeReservations(const std::vector<ClaimWant>& wants, const std::vector<ClaimedJob>& jobs) {
  bool retired = false;
  std::vector<std::string> refusals;
  {
    Lock lock(mutex_);
    for (const ClaimedJob& job : jobs) {
      const auto pool = pools_.find(job.endpoint);
      if (pool == pools_.end()) continue;
      retired = retired || pool->second.isRetiring();
      pool->second.workers().assignJob(job);
    }
    for (const ClaimWant& want : wants) {
      const auto pool = pools_.find(want.endpoint);
      if (pool == pools_.end()) continue;
      WorkerSet& workers = pool->second.workers();
      workers.releaseReserved(want.workers);
      std::ranges::move(workers.collectRefusals(), std::back_inserter(refusals));
    }
  }
  logRefusals(refusals);
  if (retired) deps_.queueSignal.wake();
}

WorkerPools::ReadyResult WorkerPools::recordReady(const EndpointId& endpoint, const WorkerId& worker) {
  const Instant now = deps_.clock.now();
  ReadyResult result;
  std::vector<std::string> refusals;
  {
    Lock lock(mutex_);
    WorkerPool& pool = pools_.at(endpoint);
    result.stays = pool.recordReady(worker, now);
    result.rolling = pool.isRolling();
    const Endpoint& rules = *pool.endpoint();
    if (pool.workers().all().size() > rules.spec.workersMin) result.idleUntil = now + rules.spec.idleTimeout;
    refusals = pool.workers().collectRefusals();
  }
  logRefusals(refusals);
  return result;
}

std::optional<bool> WorkerPools::recordGone(const EndpointId& endpoint, const WorkerId& worker, const WorkerEnd& end) {
  Lock lock(mutex_);
  const auto pool = pools_.find(endpoint);
  if (pool == pools_.end()) return std::nullopt;
  return pool->second.recordGone(worker, end, deps_.clock.now());
}

std::optional<Instant> WorkerPools::beginStopGrace(const LeaseRef& lease) {
  Lock lock(mutex_);
  const Instant now = deps_.clock.now();
  for (auto& [id, pool] : pools_) {
    const Instant end = now + pool.endpoint()->spec.stopGrace;
    if (pool.workers().beginStopGrace(lease, end)) return end;
  }
  return std::nullopt;
}

std::vector<StuckWorker> WorkerPools::markStuck() {
  const Instant now = deps_.clock.now();
  std::vector<StuckWorker> all;
  Lock lock(mutex_);
  for (auto& [id, pool] : pools_) {
    for (StuckWorker& stuck : pool.workers().markStuck(now)) {
      stuck.endpoint = id;
      all.push_back(std::move(stuck));
    }
  }
  return all;
}

std::vector<WorkerId> WorkerPools::markIdleLeaving() {
  const Instant now = deps_.clock.now();
  std::vector<WorkerId> leaving;
  Lock lock(mutex_);
  for (auto& [id, pool] : pools_) {
    if (pool.slots() <= std::min(pool.endpoint()->spec.workersMin, pool.endpoint()->spec.workersMax)) continue;
    std::ranges::move(pool.markIdleLeaving(now, deps_.queueSignal.isSet(id)), std::back_inserter(leaving));
  }
  return leaving;
}

std::vector<WorkerPools::RollingPool> WorkerPools::rollingPools() {
  std::vector<RollingPool> rolling;
  Lock lock(mutex_);
  for (auto at = pools_.begin(); at != pools_.end();) {
    const auto& [id, pool] = *at;
    if (pool.workers().all().empty() && !pool.target()) {
      at = pools_.erase(at);
      continue;
    }
    if (pool.isRolling()) rolling.push_back({id, pool.isRetiring()});
    ++at;
  }
  return rolling;
}

WorkerPool::Step WorkerPools::nextStep(const EndpointId& endpoint) {
  Lock lock(mutex_);
  const auto pool = pools_.find(endpoint);
  return pool == pools_.end() ? WorkerPool::Step{} : pool->second.nextStep(deps_.clock.now());
}

std::optional<WorkerPools::NewWorker> WorkerPools::addWorker(const EndpointId& endpoint, const WorkerId& worker,
                                                             const WorkerPool::Step& why) {
  Lock lock(mutex_);
  const auto pool = pools_.find(endpoint);
  if (pool == pools_.end()) return std::nullopt;
  ReleasePtr release = pool->second.addWorker(worker, why, deps_.clock.now());
  if (!release) return std::nullopt;
  return NewWorker{pool->second.endpoint(), std::move(release)};
}

std::vector<EndpointId> WorkerPools::beginScaling() {
  const Instant now = deps_.clock.now();
  std::vector<EndpointId> ids;
  Lock lock(mutex_);
  for (auto& [id, pool] : pools_) {
    if (!pool.beginScaling(now)) continue;
    const Endpoint& rules = *pool.endpoint();
    if (pool.slots() < rules.spec.workersMin || (!rules.spec.paused && deps_.queueSignal.isSet(id))) ids.push_back(id);
  }
  return ids;
}

ScalerView WorkerPools::scalerView(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  const auto pool = pools_.find(endpoint);
  return pool == pools_.end() ? ScalerView{} : pool->second.scalerView();
}

std::size_t WorkerPools::workersMissing(const EndpointId& endpoint, const ScalerView& view,
                                        const EndpointCounts& jobs) {
  const Instant now = deps_.clock.now();
  std::size_t missing = 0;
  bool hasChanged = false;
  {
    Lock lock(mutex_);
    const auto pool = pools_.find(endpoint);
    if (pool == pools_.end()) return 0;
    const ScalerView present = pool->second.scalerView();
    hasChanged = present.busy != view.busy || present.coming != view.coming;
    // Only workers for which both views ask: the earlier view counts no job twice that was claimed during the count,
    // and the present view counts no ended job and has the present rules.
    missing = std::min(pool->second.workersMissing(view, jobs, now), pool->second.workersMissing(present, jobs, now));
  }
  if (hasChanged && jobs.inQueue > jobs.inQueueLow) deps_.queueSignal.wake();
  return missing;
}

Instant WorkerPools::nextTaskAt(Instant now) const {
  Instant next = Instant::max();
  Lock lock(mutex_);
  for (const auto& [id, pool] : pools_) next = std::min(next, pool.nextTaskAt(now));
  return next;
}

void WorkerPools::logRefusals(const std::vector<std::string>& refusals) const {
  for (const std::string& refusal : refusals) deps_.log.write(LogLevel::error, "worker.state", refusal);
}

}  // namespace jobq

#include "core/workers/worker_pools.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/jobs/queue_signal.h"

namespace jobq {
namespace {

void logRefusals(Log& log, const std::vector<std::string>& refusals) {
  for (const std::string& refusal : refusals) log.write(LogLevel::error, "worker.state", refusal);
}

// Returns the definition with the part of this node in the numbers of workers.
EndpointPtr partOf(const EndpointPtr& whole, const NodeShare& share) {
  // Remote workers choose their node, so each node takes all that come.
  if (share.nodes == 1 || (whole->release && whole->release->isRemote)) return whole;
  auto part = std::make_shared<Endpoint>(*whole);
  part->spec.workersMin = share.of(whole->spec.workersMin, whole->spec.id);
  part->spec.workersMax = share.of(whole->spec.workersMax, whole->spec.id);
  return part;
}

}  // namespace

WorkerPools::WorkerPools(const Deps& deps, const std::vector<EndpointPtr>& endpoints) : deps_(deps) {
  for (const EndpointPtr& endpoint : endpoints) setEndpoint(endpoint);
}

void WorkerPools::setEndpoint(const EndpointPtr& now) {
  {
    Lock lock(mutex_);
    const auto found = pools_.find(now->spec.id);
    if (found != pools_.end()) {
      found->second.change(partOf(now, share_));
    } else if (now->release) {
      pools_.emplace(now->spec.id, WorkerPool(partOf(now, share_)));
    } else {
      return;  // no pool: its jobs wait for a release
    }
    wholes_[now->spec.id] = now;
  }
  deps_.queueSignal.addEndpoint(now->spec.id);
  deps_.queueSignal.rearm(now->spec.id);
  deps_.queueSignal.wake();
}

void WorkerPools::setShare(const NodeShare& share) {
  {
    Lock lock(mutex_);
    if (share_ == share) return;
    share_ = share;
    for (auto& [id, pool] : pools_) pool.change(partOf(wholes_.at(id), share));
  }
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

std::vector<PoolSummary> WorkerPools::summaries() const {
  std::vector<PoolSummary> summaries;
  Lock lock(mutex_);
  const Instant now = deps_.clock.now();
  for (const auto& [id, pool] : pools_) {
    PoolSummary& summary = summaries.emplace_back(PoolSummary{id, pool.status(now).counts, {}});
    std::string_view last;  // a remote worker with several places, which follow each other, is one worker
    for (const auto& [id, info] : pool.workers().all()) {
      const std::string_view worker = workerOfPlace(id);
      if (worker == std::exchange(last, worker) || info.release->templateId.empty()) continue;
      ++summary.workersOfTemplates[info.release->templateId];
    }
  }
  return summaries;
}

std::vector<ClaimWant> WorkerPools::reserveWorkers(const WorkersToReserve& which) {
  const auto [only, most, jobIsComing, finishing] = which;
  std::vector<ClaimWant> wants;
  Lock lock(mutex_);
  auto at = only != nullptr ? pools_.find(*only) : pools_.begin();
  for (; at != pools_.end(); at = only != nullptr ? pools_.end() : std::next(at)) {
    auto& [id, pool] = *at;
    if (pool.endpoint()->spec.paused || pool.isRetiring()) continue;
    if (!jobIsComing && !deps_.queueSignal.isSet(id)) continue;
    std::vector<WorkerId> workers;
    if (finishing == nullptr) {
      workers = pool.workers().reserve(most);
    } else if (mayGoOn(pool, *finishing)) {
      workers.push_back(*finishing);
    }
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
  logRefusals(deps_.log, refusals);
  if (retired) deps_.queueSignal.wake();
}

WorkerPools::ReadyResult WorkerPools::recordReady(const EndpointId& endpoint, const WorkerId& worker,
                                                  const ClaimedJob* next) {
  const Instant now = deps_.clock.now();
  ReadyResult result;
  std::vector<std::string> refusals;
  {
    Lock lock(mutex_);
    WorkerPool& pool = pools_.at(endpoint);
    if (next != nullptr && !mayGoOn(pool, worker)) return result;
    result.stays = pool.recordReady(worker, now);
    if (next != nullptr && result.stays) {
      pool.workers().reserveWorker(worker);
      pool.workers().assignJob(*next);
    }
    result.rolling = pool.isRolling();
    if (!isRemote(pool) && pool.workers().all().size() > pool.endpoint()->spec.workersMin)
      result.idleUntil = now + pool.endpoint()->spec.idleTimeout;
    refusals = pool.workers().collectRefusals();
  }
  logRefusals(deps_.log, refusals);
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
    if (isRemote(pool) && pool.endpoint()->spec.workersMax > 0) continue;
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
      wholes_.erase(id);
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
  // The endpoint may have changed to remote workers since the decision.
  if (pool == pools_.end() || isRemote(pool->second)) return std::nullopt;
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
    const bool isPaused = pool.endpoint()->spec.paused;
    if (pool.slots() < pool.endpoint()->spec.workersMin || (!isPaused && deps_.queueSignal.isSet(id)))
      ids.push_back(id);
  }
  return ids;
}

ScalerView WorkerPools::scalerView(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  const auto pool = pools_.find(endpoint);
  return pool == pools_.end() ? ScalerView{} : pool->second.scalerView();
}

std::size_t WorkerPools::workersMissing(const EndpointId& endpoint, const ScalerView& view, const EndpointCounts& jobs,
                                        std::size_t others) {
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
    const std::size_t most = wholes_.at(endpoint)->spec.workersMax;
    missing = std::min(missing, most - std::min(most, pool->second.slots() + others));
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

}  // namespace jobq

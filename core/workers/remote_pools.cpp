#include "core/workers/remote_pools.h"

#include "core/jobs/queue_signal.h"
#include "core/workers/worker_pool.h"
#include "core/workers/worker_set.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {
namespace {

// Returns true if the end of a worker may allow the next step: of a release, or of a deleted endpoint.
bool isInChange(const WorkerPool& pool) { return !isRemote(pool) || pool.isRolling(); }

}  // namespace

ReleasePtr RemotePools::releaseOf(const EndpointId& endpoint) const {
  Lock lock(pools_.mutex_);
  const auto pool = pools_.pools_.find(endpoint);
  return pool != pools_.pools_.end() && isRemote(pool->second) ? pool->second.target() : nullptr;
}

std::vector<WorkerView> RemotePools::threadsOf(const EndpointId& endpoint) const {
  std::vector<WorkerView> threads;
  Lock lock(pools_.mutex_);
  const auto pool = pools_.pools_.find(endpoint);
  if (pool == pools_.pools_.end() || !isRemote(pool->second)) return threads;
  if (!hasWorkers(pool->second, false) && pool->second.workers().count(WorkerState::stuck) == 0) return threads;
  threads = pool->second.view().workers;
  std::erase_if(threads, [](const WorkerView& worker) { return worker.release->isRemote; });
  return threads;
}

std::vector<RemotePool> RemotePools::all() const {
  std::vector<RemotePool> remote;
  Lock lock(pools_.mutex_);
  for (const auto& [id, pool] : pools_.pools_) {
    if (isRemote(pool)) remote.push_back({pool.endpoint(), pool.target()});
  }
  return remote;
}

bool RemotePools::addWorkers(const EndpointId& endpoint, const std::vector<WorkerId>& workers) {
  bool areAdded = true;
  if (workers.empty()) return areAdded;
  {
    Lock lock(pools_.mutex_);
    const auto found = pools_.pools_.find(endpoint);
    if (found == pools_.pools_.end() || !isRemote(found->second)) return false;
    WorkerPool& pool = found->second;
    const Instant now = pools_.deps_.clock.now();
    for (const WorkerId& worker : workers) {
      (void)pool.addWorker(worker, {}, now);
      if (pool.recordReady(worker, now)) continue;
      (void)pool.recordGone(worker, {}, now);
      areAdded = false;
      break;
    }
  }
  if (areAdded && pools_.deps_.queueSignal.isSet(endpoint)) pools_.deps_.queueSignal.wake();
  return areAdded;
}

void RemotePools::addBusyWorker(const ClaimedJob& job) {
  Lock lock(pools_.mutex_);
  const auto found = pools_.pools_.find(job.endpoint);
  if (found == pools_.pools_.end() || !isRemote(found->second)) return;
  WorkerPool& pool = found->second;
  const Instant now = pools_.deps_.clock.now();
  (void)pool.addWorker(job.worker, {}, now);
  if (!pool.recordReady(job.worker, now)) return;
  pool.workers().reserveWorker(job.worker);
  pool.workers().assignJob(job);
}

// Looks once for all workers of an endpoint whether the pool is in change.
template <class Remove>
void RemotePools::removeEach(const Places& workers, const Remove& remove) {
  bool isChanging = false;
  {
    Lock lock(pools_.mutex_);
    for (auto at = workers.begin(); at != workers.end();) {
      const EndpointId& endpoint = at->first;
      const auto pool = pools_.pools_.find(endpoint);
      for (; at != workers.end() && at->first == endpoint; ++at) {
        if (pool != pools_.pools_.end()) remove(pool->second, at->second);
      }
      isChanging = isChanging || (pool != pools_.pools_.end() && isInChange(pool->second));
    }
  }
  wakeIfChanging(isChanging);
}

void RemotePools::removeIdleWorkers(const Places& workers) {
  removeEach(workers, [](WorkerPool& pool, const WorkerId& worker) { pool.workers().removeUnlessBusy(worker); });
}

void RemotePools::removeIdleWorker(const WorkerId& worker) {
  bool isChanging = false;
  {
    Lock lock(pools_.mutex_);
    for (auto& [id, pool] : pools_.pools_) {
      if (!pool.workers().all().contains(worker)) continue;
      pool.workers().removeUnlessBusy(worker);
      isChanging = isChanging || isInChange(pool);
    }
  }
  wakeIfChanging(isChanging);
}

void RemotePools::removeWorkers(const Places& workers) {
  const Instant now = pools_.deps_.clock.now();
  removeEach(workers, [now](WorkerPool& pool, const WorkerId& worker) { (void)pool.recordGone(worker, {}, now); });
}

void RemotePools::wakeIfChanging(bool isChanging) {
  if (isChanging) pools_.deps_.queueSignal.wake();
}

}  // namespace jobq

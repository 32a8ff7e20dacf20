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

std::vector<RemotePool> RemotePools::all() const {
  std::vector<RemotePool> remote;
  Lock lock(pools_.mutex_);
  for (const auto& [id, pool] : pools_.pools_) {
    if (isRemote(pool)) remote.push_back({pool.endpoint(), pool.target()});
  }
  return remote;
}

bool RemotePools::addWorker(const EndpointId& endpoint, const WorkerId& worker) {
  {
    Lock lock(pools_.mutex_);
    const auto found = pools_.pools_.find(endpoint);
    if (found == pools_.pools_.end() || !isRemote(found->second)) return false;
    WorkerPool& pool = found->second;
    const Instant now = pools_.deps_.clock.now();
    (void)pool.addWorker(worker, {}, now);
    if (!pool.recordReady(worker, now)) {
      (void)pool.recordGone(worker, {}, now);
      return false;
    }
  }
  if (pools_.deps_.queueSignal.isSet(endpoint)) pools_.deps_.queueSignal.wake();
  return true;
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

void RemotePools::removeIdleWorker(const EndpointId& endpoint, const WorkerId& worker) {
  bool isChanging = false;
  {
    Lock lock(pools_.mutex_);
    const auto pool = pools_.pools_.find(endpoint);
    if (pool == pools_.pools_.end()) return;
    pool->second.workers().removeUnlessBusy(worker);
    isChanging = isInChange(pool->second);
  }
  wakeIfChanging(isChanging);
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

void RemotePools::removeWorker(const EndpointId& endpoint, const WorkerId& worker) {
  bool isChanging = false;
  {
    Lock lock(pools_.mutex_);
    const auto pool = pools_.pools_.find(endpoint);
    if (pool == pools_.pools_.end()) return;
    (void)pool->second.recordGone(worker, {}, pools_.deps_.clock.now());
    isChanging = isInChange(pool->second);
  }
  wakeIfChanging(isChanging);
}

void RemotePools::wakeIfChanging(bool isChanging) {
  if (isChanging) pools_.deps_.queueSignal.wake();
}

}  // namespace jobq

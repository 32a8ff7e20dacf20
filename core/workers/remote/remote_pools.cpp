#include "core/workers/remote/remote_pools.h"

#include "core/jobs/queue_signal.h"
#include "core/workers/pool/pool_table.h"
#include "core/workers/pool/worker_pool.h"
#include "core/workers/pool/worker_set.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {
namespace {

// Returns true if the end of a worker may allow the next step of a release or of the deletion of an endpoint.
bool isInChange(const WorkerPool& pool) { return !isRemote(pool) || pool.isRolling(); }

}  // namespace

ReleasePtr RemotePools::releaseOf(const EndpointId& endpoint) const {
  Lock lock(pools_.mutex_);
  const PoolSlot* const slot = pools_.table_.find(endpoint);
  return slot != nullptr && isRemote(slot->pool) ? slot->pool.target() : nullptr;
}

std::vector<WorkerView> RemotePools::threadsOf(const EndpointId& endpoint) const {
  std::vector<WorkerView> threads;
  Lock lock(pools_.mutex_);
  const PoolSlot* const slot = pools_.table_.find(endpoint);
  if (slot == nullptr || !isRemote(slot->pool)) return threads;
  if (!hasWorkers(slot->pool, false) && slot->pool.workers().count(WorkerState::stuck) == 0) return threads;
  threads = slot->pool.view().workers;
  std::erase_if(threads, [](const WorkerView& worker) { return worker.release->isRemote; });
  return threads;
}

std::vector<RemotePool> RemotePools::all() const {
  std::vector<RemotePool> remote;
  Lock lock(pools_.mutex_);
  for (const auto& [id, slot] : pools_.table_.all()) {
    if (isRemote(slot.pool)) remote.push_back({slot.pool.endpoint(), slot.pool.target()});
  }
  return remote;
}

bool RemotePools::addWorkers(const EndpointId& endpoint, const std::vector<WorkerId>& workers) {
  bool areAdded = true;
  if (workers.empty()) return areAdded;
  {
    Lock lock(pools_.mutex_);
    PoolSlot* const slot = pools_.table_.change(endpoint);
    if (slot == nullptr || !isRemote(slot->pool)) return false;
    const Instant now = pools_.deps_.clock.now();
    for (const WorkerId& worker : workers) {
      (void)slot->pool.addWorker(worker, {}, now);
      if (slot->pool.recordReady(worker, now)) continue;
      (void)slot->pool.recordGone(worker, {}, now);
      areAdded = false;
      break;
    }
  }
  if (areAdded && pools_.deps_.queueSignal.isSet(endpoint)) pools_.deps_.queueSignal.wake();
  return areAdded;
}

void RemotePools::addBusyWorker(const ClaimedJob& job) {
  Lock lock(pools_.mutex_);
  PoolSlot* const slot = pools_.table_.change(job.endpoint);
  if (slot == nullptr || !isRemote(slot->pool)) return;
  const Instant now = pools_.deps_.clock.now();
  (void)slot->pool.addWorker(job.worker, {}, now);
  if (!slot->pool.recordReady(job.worker, now)) return;
  slot->pool.workers().reserveWorker(job.worker);
  pools_.table_.assignJob(*slot, job);
}

// Looks once for all workers of an endpoint whether the pool is in change.
template <class Remove>
void RemotePools::removeEach(const Places& workers, const Remove& remove) {
  bool isChanging = false;
  {
    Lock lock(pools_.mutex_);
    for (auto at = workers.begin(); at != workers.end();) {
      const EndpointId& endpoint = at->first;
      PoolSlot* const slot = pools_.table_.change(endpoint);
      for (; at != workers.end() && at->first == endpoint; ++at) {
        if (slot != nullptr) remove(pools_.table_, *slot, at->second);
      }
      isChanging = isChanging || (slot != nullptr && isInChange(slot->pool));
    }
  }
  wakeIfChanging(isChanging);
}

void RemotePools::removeIdleWorkers(const Places& workers) {
  removeEach(workers,
             [](PoolTable&, PoolSlot& slot, const WorkerId& worker) { slot.pool.workers().removeUnlessBusy(worker); });
}

void RemotePools::removeIdleWorker(const WorkerId& worker) {
  bool isChanging = false;
  {
    Lock lock(pools_.mutex_);
    for (const auto& [id, known] : pools_.table_.all()) {
      if (!known.pool.workers().all().contains(worker)) continue;
      PoolSlot* const slot = pools_.table_.change(id);
      slot->pool.workers().removeUnlessBusy(worker);
      isChanging = isChanging || isInChange(slot->pool);
    }
  }
  wakeIfChanging(isChanging);
}

void RemotePools::removeWorkers(const Places& workers) {
  const Instant now = pools_.deps_.clock.now();
  removeEach(workers, [now](PoolTable& table, PoolSlot& slot, const WorkerId& worker) {
    table.endRun(slot, worker);
    (void)slot.pool.recordGone(worker, {}, now);
  });
}

void RemotePools::wakeIfChanging(bool isChanging) {
  if (isChanging) pools_.deps_.queueSignal.wake();
}

}  // namespace jobq

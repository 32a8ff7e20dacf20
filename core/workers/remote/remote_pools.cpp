#include "core/workers/remote/remote_pools.h"

#include "core/jobs/queue_signal.h"
#include "core/workers/pool/pool_table.h"
#include "core/workers/pool/worker_pool.h"
#include "core/workers/pool/worker_set.h"
#include "jobq/time.h"

namespace jobq {
namespace {

// Returns true if the end of a worker may allow the next step of a release or of the deletion of an endpoint.
bool isInChange(const WorkerPool& pool) { return !isRemote(pool) || pool.isRolling(); }

}  // namespace

ReleasePtr RemotePools::releaseOf(const EndpointId& endpoint) const {
  return pools_.read([&](const PoolTable& table) -> ReleasePtr {
    const PoolSlot* const slot = table.find(endpoint);
    return slot != nullptr && isRemote(slot->pool) ? slot->pool.target() : nullptr;
  });
}

std::optional<RemotePool> RemotePools::find(const EndpointId& endpoint) const {
  return pools_.read([&](const PoolTable& table) -> std::optional<RemotePool> {
    const PoolSlot* const slot = table.find(endpoint);
    if (slot == nullptr || !isRemote(slot->pool)) return std::nullopt;
    return RemotePool{slot->pool.endpoint(), slot->pool.target()};
  });
}

std::vector<WorkerView> RemotePools::threadsOf(const EndpointId& endpoint) const {
  return pools_.read([&](const PoolTable& table) {
    std::vector<WorkerView> threads;
    const PoolSlot* const slot = table.find(endpoint);
    if (slot == nullptr || !isRemote(slot->pool)) return threads;
    if (!hasWorkers(slot->pool, false) && slot->pool.workers().count(WorkerState::stuck) == 0) return threads;
    threads = slot->pool.view().workers;
    std::erase_if(threads, [](const WorkerView& worker) { return worker.release->isRemote; });
    return threads;
  });
}

std::vector<RemotePool> RemotePools::all() const {
  return pools_.read([](const PoolTable& table) {
    std::vector<RemotePool> remote;
    for (const auto& [id, slot] : table.all()) {
      if (isRemote(slot.pool)) remote.push_back({slot.pool.endpoint(), slot.pool.target()});
    }
    return remote;
  });
}

bool RemotePools::addWorkers(const EndpointId& endpoint, const std::vector<WorkerId>& workers) {
  if (workers.empty()) return true;
  const bool areAdded = pools_.change([&](PoolTable& table, Instant now) {
    PoolSlot* const slot = table.change(endpoint);
    if (slot == nullptr || !isRemote(slot->pool)) return false;
    for (const WorkerId& worker : workers) {
      (void)slot->pool.addWorker(worker, {}, now);
      if (slot->pool.recordReady(worker, now)) continue;
      (void)slot->pool.recordGone(worker, {}, now);
      return false;
    }
    return true;
  });
  if (areAdded && pools_.queueSignal().isSet(endpoint)) pools_.queueSignal().wake();
  return areAdded;
}

void RemotePools::addBusyWorker(const ClaimedJob& job) {
  pools_.change([&](PoolTable& table, Instant now) {
    PoolSlot* const slot = table.change(job.endpoint);
    if (slot == nullptr || !isRemote(slot->pool)) return;
    (void)slot->pool.addWorker(job.worker, {}, now);
    if (!slot->pool.recordReady(job.worker, now)) return;
    slot->pool.workers().reserveWorker(job.worker);
    table.assignJob(*slot, job);
  });
}

// Looks once for all workers of an endpoint whether the pool is in change.
template <class Remove>
void RemotePools::removeEach(const Places& workers, const Remove& remove) {
  wakeIfChanging(pools_.change([&](PoolTable& table, Instant now) {
    bool isChanging = false;
    for (auto at = workers.begin(); at != workers.end();) {
      const EndpointId& endpoint = at->first;
      PoolSlot* const slot = table.change(endpoint);
      for (; at != workers.end() && at->first == endpoint; ++at) {
        if (slot != nullptr) remove(table, *slot, at->second, now);
      }
      isChanging = isChanging || (slot != nullptr && isInChange(slot->pool));
    }
    return isChanging;
  }));
}

void RemotePools::removeIdleWorkers(const Places& workers) {
  removeEach(workers, [](PoolTable& /*table*/, PoolSlot& slot, const WorkerId& worker, Instant /*now*/) {
    slot.pool.workers().removeUnlessBusy(worker);
  });
}

void RemotePools::removeIdleWorker(const WorkerId& worker) {
  wakeIfChanging(pools_.change([&](PoolTable& table, Instant /*now*/) {
    bool isChanging = false;
    for (const auto& [id, known] : table.all()) {
      if (!known.pool.workers().all().contains(worker)) continue;
      PoolSlot* const slot = table.change(id);
      slot->pool.workers().removeUnlessBusy(worker);
      isChanging = isChanging || isInChange(slot->pool);
    }
    return isChanging;
  }));
}

void RemotePools::removeWorkers(const Places& workers) {
  removeEach(workers, [](PoolTable& table, PoolSlot& slot, const WorkerId& worker, Instant now) {
    table.endRun(slot, worker);
    (void)slot.pool.recordGone(worker, {}, now);
  });
}

void RemotePools::wakeIfChanging(bool isChanging) {
  if (isChanging) pools_.queueSignal().wake();
}

}  // namespace jobq

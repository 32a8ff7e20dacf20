#include "core/workers/remote_pools.h"

#include "core/jobs/queue_signal.h"
#include "core/workers/worker_pool.h"
#include "core/workers/worker_state.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

ReleasePtr RemotePools::releaseOf(const EndpointId& endpoint) const {
  Lock lock(pools_.mutex_);
  const auto pool = pools_.pools_.find(endpoint);
  return pool != pools_.pools_.end() && isRemote(pool->second) ? pool->second.target() : nullptr;
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

void RemotePools::removeIdleWorker(const EndpointId& endpoint, const WorkerId& worker) {
  Lock lock(pools_.mutex_);
  const auto pool = pools_.pools_.find(endpoint);
  if (pool == pools_.pools_.end()) return;
  const auto& all = pool->second.workers().all();
  const auto found = all.find(worker);
  if (found == all.end() || found->second.state != WorkerState::idle) return;
  (void)pool->second.recordGone(worker, {}, pools_.deps_.clock.now());
}

void RemotePools::removeWorker(const EndpointId& endpoint, const WorkerId& worker) {
  (void)pools_.recordGone(endpoint, worker, {});
}

}  // namespace jobq

#include "core/workers/launched/remote_launches.h"

#include <utility>

#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

RemoteLoads RemoteLaunches::loads(const EndpointId& endpoint) const {
  Lock lock(remote_.mutex_);
  return loadsOfRemoteWorkers(remote_.table_, endpoint, remote_.clock_.now());
}

void RemoteLaunches::retireWorker(const RemoteWorkerKey& key) {
  RemoteChanges changes;
  {
    Lock lock(remote_.mutex_);
    const Instant now = remote_.clock_.now();
    RemoteWorker* const worker = remote_.table_.findOrAdd(key, now);
    if (worker == nullptr) return;  // the table is full: the worker gets no job either
    worker->state.apply(RemoteWorkerEvent::retire);
    RemoteTable::endCalls(key, *worker, now, changes);
  }
  remote_.carryOut(std::move(changes));
}

void RemoteLaunches::noteExit(const RemoteWorkerKey& key) {
  RemoteChanges changes;
  {
    Lock lock(remote_.mutex_);
    RemoteWorker* const worker = remote_.table_.find(key);
    if (worker == nullptr) return;
    worker->state.apply(RemoteWorkerEvent::retire);
    worker->link.noteExit();
    RemoteTable::checkWorker(key, *worker, remote_.clock_.now(), remote_.draining_, changes);
  }
  remote_.carryOut(std::move(changes));
}

}  // namespace jobq

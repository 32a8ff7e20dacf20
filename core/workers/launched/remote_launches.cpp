#include "core/workers/launched/remote_launches.h"

#include "jobq/time.h"

namespace jobq {

RemoteLoads RemoteLaunches::loads(const EndpointId& endpoint) const {
  return remote_.read(
      [&](const RemoteState& state, Instant now) { return loadsOfRemoteWorkers(state.table, endpoint, now); });
}

void RemoteLaunches::retireWorker(const RemoteWorkerKey& key) {
  remote_.change([&](RemoteState& state, Instant now, RemoteChanges& changes) {
    RemoteWorker* const worker = state.table.findOrAdd(key, now);
    if (worker == nullptr) return;  // the table is full: the worker gets no job either
    worker->state.apply(RemoteWorkerEvent::retire);
    RemoteTable::endCalls(key, *worker, now, changes);
  });
}

void RemoteLaunches::noteExit(const RemoteWorkerKey& key) {
  remote_.change([&](RemoteState& state, Instant now, RemoteChanges& changes) {
    RemoteWorker* const worker = state.table.find(key);
    if (worker == nullptr) return;
    worker->state.apply(RemoteWorkerEvent::retire);
    worker->link.noteExit();
    RemoteTable::checkWorker(key, *worker, now, remote_.isStopping(), changes);
  });
}

}  // namespace jobq

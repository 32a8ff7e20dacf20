// The pools of endpoints whose workers come over HTTP: their idle workers are the places of parked calls
// (core/workers/remote/remote_workers.h).
#pragma once

#include <utility>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/workers/pool/worker_pools.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"

namespace jobq {

/// An endpoint whose jobs are for remote workers.
struct RemotePool {
  EndpointPtr endpoint;
  ReleasePtr release;
};

/// A view of WorkerPools, which outlives it. Any thread.
class RemotePools {
 public:
  explicit RemotePools(WorkerPools& pools) : pools_(pools) {}

  /// Returns the release of the endpoint's remote workers; null if its workers are threads, or it has no pool here.
  ReleasePtr releaseOf(const EndpointId& endpoint) const;

  /// Returns the threads of a release before, while one of them stays or is stuck; none if the newest release has
  /// threads.
  std::vector<WorkerView> threadsOf(const EndpointId& endpoint) const;

  /// Returns all endpoints with remote workers.
  std::vector<RemotePool> all() const;

  /// Adds idle workers. Returns false, and adds none, if the endpoint has no pool of remote workers here, or may have
  /// no worker. Wakes the dispatcher if jobs may wait, behind the last one, so that one claim serves all of them.
  bool addWorkers(const EndpointId& endpoint, const std::vector<WorkerId>& workers);
  /// Adds a worker that has the job already.
  void addBusyWorker(const ClaimedJob& job);
  /// Workers with their endpoints.
  using Places = std::vector<std::pair<EndpointId, WorkerId>>;
  /// Removes the workers that have no job. A worker with a claim under way is removed when the claim has no job.
  void removeIdleWorkers(const Places& workers);
  /// Does the same for one worker, at each endpoint that has the worker.
  void removeIdleWorker(const WorkerId& worker);
  /// Removes the workers in any state.
  void removeWorkers(const Places& workers);

 private:
  template <class Remove>
  void removeEach(const Places& workers, const Remove& remove);
  void wakeIfChanging(bool isChanging);

  WorkerPools& pools_;
};

}  // namespace jobq

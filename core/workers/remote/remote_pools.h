// The pools of endpoints whose workers come over HTTP. The idle workers of such a pool are the places of parked calls
// (core/workers/remote/remote_workers.h).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/workers/pool/locked_pools.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"

namespace jobq {

/// An endpoint whose jobs are for remote workers.
struct RemotePool {
  EndpointPtr endpoint;
  ReleasePtr release;
};

/// A view of LockedPools. The pools outlive the view. Any thread.
class RemotePools {
 public:
  explicit RemotePools(LockedPools& pools) : pools_(pools) {}

  /// Returns the release of the endpoint's remote workers; null if the workers are threads, or the endpoint has no pool
  /// here.
  ReleasePtr releaseOf(const EndpointId& endpoint) const;

  /// Returns the endpoint if its workers are remote; no value if releaseOf() returns null.
  std::optional<RemotePool> find(const EndpointId& endpoint) const;

  /// Returns the threads of a release before, while such a thread stays or is stuck. Empty if the newest release has
  /// threads.
  std::vector<WorkerView> threadsOf(const EndpointId& endpoint) const;

  /// Returns all endpoints with remote workers.
  std::vector<RemotePool> all() const;

  /// Adds idle workers. Returns false, and adds no worker, if the endpoint has no pool of remote workers here, or may
  /// have no worker. Wakes the dispatcher if jobs may wait, after the last worker, so that a single claim serves all
  /// added workers.
  bool addWorkers(const EndpointId& endpoint, const std::vector<WorkerId>& workers);
  /// Adds a worker that has the job already.
  void addBusyWorker(const ClaimedJob& job);
  /// Workers with the endpoint of each.
  using Places = std::vector<std::pair<EndpointId, WorkerId>>;
  /// Removes the workers that have no job. A worker with a claim under way is removed when the claim has no job.
  void removeIdleWorkers(const Places& workers);
  /// Does the same for a single worker, at each endpoint that has the worker.
  void removeIdleWorker(const WorkerId& worker);
  /// Removes the workers in any state.
  void removeWorkers(const Places& workers);

 private:
  template <class Remove>
  void removeEach(const Places& workers, const Remove& remove);
  void wakeIfChanging(bool isChanging);

  LockedPools& pools_;
};

}  // namespace jobq

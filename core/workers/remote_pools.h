// The pools of endpoints whose workers come over HTTP: their idle workers are the places of parked calls
// (core/workers/remote_workers.h).
#pragma once

#include "core/endpoints/endpoint.h"
#include "core/workers/worker_pools.h"
#include "jobq/job.h"

namespace jobq {

/// A view of WorkerPools, which outlives it. Any thread.
class RemotePools {
 public:
  explicit RemotePools(WorkerPools& pools) : pools_(pools) {}

  /// Returns the release of the endpoint's remote workers; null if its workers are threads, or it has no pool here.
  ReleasePtr releaseOf(const EndpointId& endpoint) const;

  /// Adds an idle worker. Returns false, and adds none, if the endpoint has no pool of remote workers here, or may have
  /// no worker. Wakes the dispatcher if jobs may wait.
  bool addWorker(const EndpointId& endpoint, const WorkerId& worker);
  /// Removes the worker, unless a claim has it or has given it a job.
  void removeIdleWorker(const EndpointId& endpoint, const WorkerId& worker);
  /// Removes the worker in any state.
  void removeWorker(const EndpointId& endpoint, const WorkerId& worker);

 private:
  WorkerPools& pools_;
};

}  // namespace jobq

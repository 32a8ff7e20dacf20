// Views of the remote workers of an endpoint, for responses of the API and for the workers that a launcher runs.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "core/endpoints/worker_pool_view.h"
#include "core/workers/remote/remote_table.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// A copy of a remote worker's state.
struct RemoteLoad {
  bool hasPolled = false;    ///< the worker has asked for jobs
  bool isConnected = false;  ///< with an open connection, now or in the last 10 s, or with jobs
  bool isLeaving = false;    ///< the worker has asked to be replaced
  bool isUnhealthy = false;  ///< the worker has reported that it is about to end
  std::size_t jobs = 0;      ///< handed out or assigned
  bool isNormal = false;     ///< some job has no lowPriority
  Instant lastJobAt{};       ///< when a job was last handed out
  Millis stopIgnored{0};     ///< time for which, by the pings, the worker has continued a job after the order to stop
  bool hasNoConnection = false;  ///< all connections of the worker are closed now
};

using RemoteLoads = std::map<WorkerId, RemoteLoad>;

/// Returns the workers of the endpoint, without the releases: starting, idle, running, leaving or unhealthy. A worker
/// with closed connections is included while the worker has jobs, or is unhealthy.
std::vector<WorkerView> viewRemoteWorkers(const RemoteTable& table, const EndpointId& endpoint, Instant now);

/// Returns each known worker of the endpoint.
RemoteLoads loadsOfRemoteWorkers(const RemoteTable& table, const EndpointId& endpoint, Instant now);

}  // namespace jobq

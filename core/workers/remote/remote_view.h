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

/// A remote worker, as copied at one moment.
struct RemoteLoad {
  bool hasPolled = false;        ///< the worker has asked for jobs
  bool isConnected = false;      ///< with an open connection, now or in the last 10 s, or with jobs
  bool isLeaving = false;        ///< the worker has asked to be replaced
  bool isUnhealthy = false;      ///< the worker is about to end, by its own word
  std::size_t jobs = 0;          ///< handed out or assigned
  bool isNormal = false;         ///< one of the jobs has no lowPriority
  Instant lastJobAt{};           ///< when a job was last handed out
  Millis stopIgnored{0};         ///< for how long it has gone on, by its pings, with a job that it was told to stop
  bool hasNoConnection = false;  ///< its connections are all closed now
};

using RemoteLoads = std::map<WorkerId, RemoteLoad>;

/// Returns the workers of the endpoint, without their releases: starting, idle, running, leaving or unhealthy. A worker
/// whose connections are closed is there while it has jobs, or is unhealthy.
std::vector<WorkerView> viewRemoteWorkers(const RemoteTable& table, const EndpointId& endpoint, Instant now);

/// Returns each known worker of the endpoint.
RemoteLoads loadsOfRemoteWorkers(const RemoteTable& table, const EndpointId& endpoint, Instant now);

}  // namespace jobq

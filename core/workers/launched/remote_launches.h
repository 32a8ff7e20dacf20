// Access of LaunchedWorkers to the remote workers that a launcher runs: the loads of the workers, and the steps to end
// a worker.
#pragma once

#include "core/workers/remote/remote_registry.h"
#include "core/workers/remote/remote_view.h"
#include "core/workers/remote/remote_worker.h"
#include "jobq/job.h"

namespace jobq {

/// A view of RemoteRegistry. The registry outlives the view. Any thread.
class RemoteLaunches {
 public:
  explicit RemoteLaunches(RemoteRegistry& remote) : remote_(remote) {}

  /// Returns each known worker of the endpoint, launched or not.
  RemoteLoads loads(const EndpointId& endpoint) const;
  /// Hands out no further job to the worker, even if the worker connects later. Ends the parked calls of the worker now
  /// and once a second, because a public worker that was asked to end waits for the answers.
  void retireWorker(const RemoteWorkerKey& key);
  /// Notes that the process of the worker has ended. The jobs of the worker are lost as soon as the server has read the
  /// last connection of the worker to the end: a result may be among the unread bytes.
  void noteExit(const RemoteWorkerKey& key);

 private:
  RemoteRegistry& remote_;
};

}  // namespace jobq

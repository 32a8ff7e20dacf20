// Access of LaunchedWorkers to the remote workers that a launcher runs: how busy they are, and how they leave.
#pragma once

#include "core/workers/remote/remote_view.h"
#include "core/workers/remote/remote_worker.h"
#include "core/workers/remote/remote_workers.h"
#include "jobq/job.h"

namespace jobq {

/// A view of RemoteWorkers, which outlives it. Any thread.
class RemoteLaunches {
 public:
  explicit RemoteLaunches(RemoteWorkers& remote) : remote_(remote) {}

  /// Returns each known worker of the endpoint, launched or not.
  RemoteLoads loads(const EndpointId& endpoint) const;
  /// Hands out no further job to the worker, also if it comes later, and ends its parked calls now and once a second,
  /// because a public worker that was asked to end waits for their answers.
  void retireWorker(const RemoteWorkerKey& key);
  /// Notes that the process of the worker has ended. Its jobs are lost as soon as the server has read the last
  /// connection of the worker to its end: a result may be among the unread bytes.
  void noteExit(const RemoteWorkerKey& key);

 private:
  RemoteWorkers& remote_;
};

}  // namespace jobq

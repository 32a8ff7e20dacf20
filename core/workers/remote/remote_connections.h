// Access of the calls of remote workers to the connections of the calls.
#pragma once

#include <memory>

#include "core/base/connection_owner.h"
#include "core/workers/remote/remote_worker.h"
#include "core/workers/remote/remote_workers.h"

namespace jobq {

/// A view of RemoteWorkers. The RemoteWorkers outlive the view and the connections. Any thread.
class RemoteConnections {
 public:
  explicit RemoteConnections(RemoteWorkers& remote) : remote_(remote) {}

  /// Does the work of RemoteWorkers::connect().
  std::shared_ptr<const ConnectionOwner> connect(const RemoteWorkerKey& key, WorkerCall call);

 private:
  class Owner;

  RemoteWorkers& remote_;
};

}  // namespace jobq

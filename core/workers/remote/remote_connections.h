// The connections of remote workers: an open connection is a sign of life.
#pragma once

#include <memory>

#include "core/base/connection_owner.h"
#include "core/workers/remote/remote_registry.h"
#include "core/workers/remote/remote_worker.h"

namespace jobq {

/// Does the work of RemoteWorkers::connect(). The registry outlives the connection. Any thread.
std::shared_ptr<const ConnectionOwner> openConnection(RemoteRegistry& registry, const RemoteWorkerKey& key,
                                                      WorkerCall call);

}  // namespace jobq

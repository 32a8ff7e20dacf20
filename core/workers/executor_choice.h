// The executor of the dispatcher: a worker is a thread of this process or a place of a remote worker.
#pragma once

#include <utility>

#include "core/endpoints/endpoint.h"
#include "core/workers/executor.h"
#include "core/workers/remote_workers.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"

namespace jobq {

/// The threads of the calls are those of Executor. `threads` and `remote` outlive the object.
class ExecutorChoice final : public Executor {
 public:
  ExecutorChoice(Executor& threads, RemoteWorkers& remote) : threads_(threads), remote_(remote) {}

  /// A pool of remote workers starts none.
  void startWorker(const EndpointPtr& endpoint, const ReleasePtr& release, const WorkerId& worker,
                   WorkerEvents& events) override {
    threads_.startWorker(endpoint, release, worker, events);
  }
  void assign(ClaimedJob job) override {
    if (outlivesNode(job.worker)) return remote_.assign(std::move(job));
    threads_.assign(std::move(job));
  }
  void stopWorker(const WorkerId& worker) override {
    if (outlivesNode(worker)) return remote_.removePlace(worker);
    threads_.stopWorker(worker);
  }

 private:
  Executor& threads_;
  RemoteWorkers& remote_;
};

}  // namespace jobq

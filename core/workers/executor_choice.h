// The executor of the dispatcher: a worker is a thread of the process or a place of a remote worker.
#pragma once

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/base/suspended_call.h"
#include "core/endpoints/endpoint.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/deferred_insert.h"
#include "core/workers/remote/remote_workers.h"
#include "core/workers/run/executor.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/mutex.h"

namespace jobq {

/// The threads of the calls are the threads of Executor. Followers of a job are told of the claim. The references
/// outlive the object.
class ExecutorChoice final : public Executor {
 public:
  ExecutorChoice(Executor& threads, RemoteWorkers& remote, CompletionNotifier& completions)
      : threads_(threads), remote_(remote), completions_(completions) {}

  /// A pool of remote workers starts no worker.
  void startWorker(const EndpointPtr& endpoint, const ReleasePtr& release, const WorkerId& worker,
                   WorkerEvents& events) override {
    threads_.startWorker(endpoint, release, worker, events);
  }
  void assign(ClaimedJob job) override {
    completions_.announceChange(job.lease.job);
    if (!outlivesNode(job.worker)) return threads_.assign(std::move(job));
    if (const auto call = remote_.assign(std::move(job))) keepCall(*call);
  }
  void assignUnstored(ClaimedJob job, const std::shared_ptr<DeferredInsert>& insert) override {
    if (outlivesNode(job.worker)) return Executor::assignUnstored(std::move(job), insert);
    threads_.assignUnstored(std::move(job), insert);
  }
  void sendAssigned() noexcept override {
    std::vector<SuspendedCall> calls;
    {
      Lock lock(mutex_);
      calls.swap(assigned_);
    }
    for (const SuspendedCall& call : calls) call.resume();
  }
  void stopWorker(const WorkerId& worker) override {
    if (outlivesNode(worker)) return remote_.removePlace(worker);
    threads_.stopWorker(worker);
  }

 private:
  // The jobs of a call come one after the other.
  void keepCall(const SuspendedCall& call) {
    try {
      Lock lock(mutex_);
      if (assigned_.empty() || assigned_.back().id != call.id) assigned_.push_back(call);
    } catch (const std::bad_alloc&) {
      call.resume();  // the call has the job, and is answered without the next ones
    }
  }

  Executor& threads_;
  RemoteWorkers& remote_;
  CompletionNotifier& completions_;
  Mutex mutex_;
  std::vector<SuspendedCall> assigned_ JOBQ_GUARDED_BY(mutex_);  // have got jobs, until sendAssigned()
};

}  // namespace jobq

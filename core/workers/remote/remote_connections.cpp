#include "core/workers/remote/remote_connections.h"

#include <utility>

#include "jobq/mutex.h"

namespace jobq {

/// A connection with calls of a worker.
class RemoteConnections::Owner final : public ConnectionOwner {
 public:
  Owner(RemoteWorkers& remote, RemoteWorkerKey key, bool hasAsked)
      : remote_(remote), key_(std::move(key)), hasAsked_(hasAsked) {}
  ~Owner() override {
    Lock lock(remote_.mutex_);
    remote_.table_.noteClosed(key_, end_, remote_.clock_.now());
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  bool needsConnection() const noexcept override {
    Lock lock(remote_.mutex_);
    const RemoteWorker* const worker = remote_.table_.find(key_);
    return worker != nullptr && !worker->jobs.empty();
  }
  void noteFormer(const ConnectionOwner& former) const noexcept override {
    const auto* const owner = dynamic_cast<const Owner*>(&former);
    hasAsked_ = hasAsked_ || (owner != nullptr && owner->hasAsked_ && owner->key_ == key_);
  }
  void noteEnd(ConnectionEnd end) const noexcept override {
    if (hasAsked_) end_ = end;
  }

 private:
  RemoteWorkers& remote_;
  const RemoteWorkerKey key_;
  // Used by the thread of the connection only.
  mutable bool hasAsked_;  // a call for jobs or stops
  mutable ConnectionEnd end_ = ConnectionEnd::inOrder;
};

// A public worker sends each progress over a separate connection, and closes the connection after the answer. Only the
// end of a connection with a call for jobs or stops is a sign about the worker.
std::shared_ptr<const ConnectionOwner> RemoteConnections::connect(const RemoteWorkerKey& key, WorkerCall call) {
  {
    Lock lock(remote_.mutex_);
    RemoteWorker* const worker = remote_.table_.find(key);
    if (worker == nullptr) return nullptr;
    worker->link.noteOpened();
  }
  return std::make_shared<Owner>(remote_, key, call == WorkerCall::question);
}

}  // namespace jobq

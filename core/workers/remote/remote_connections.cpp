#include "core/workers/remote/remote_connections.h"

#include <utility>

#include "jobq/time.h"

namespace jobq {
namespace {

/// A connection with calls of a worker.
class Owner final : public ConnectionOwner {
 public:
  Owner(RemoteRegistry& registry, RemoteWorkerKey key, bool hasAsked)
      : registry_(registry), key_(std::move(key)), hasAsked_(hasAsked) {}
  ~Owner() override {
    registry_.change([this](RemoteState& state, Instant now, RemoteChanges& /*changes*/) {
      state.table.noteClosed(key_, end_, now);
    });
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  bool needsConnection() const noexcept override {
    return registry_.read([this](const RemoteState& state, Instant /*now*/) {
      const auto worker = state.table.all().find(key_);
      return worker != state.table.all().end() && !worker->second.jobs.empty();
    });
  }
  void noteFormer(const ConnectionOwner& former) const noexcept override {
    const auto* const owner = dynamic_cast<const Owner*>(&former);
    hasAsked_ = hasAsked_ || (owner != nullptr && owner->hasAsked_ && owner->key_ == key_);
  }
  void noteEnd(ConnectionEnd end) const noexcept override {
    if (hasAsked_) end_ = end;
  }

 private:
  RemoteRegistry& registry_;
  const RemoteWorkerKey key_;
  // Used by the thread of the connection only.
  mutable bool hasAsked_;  // a call for jobs or stops
  mutable ConnectionEnd end_ = ConnectionEnd::inOrder;
};

}  // namespace

// A public worker sends each progress over a separate connection, and closes the connection after the answer. Only the
// end of a connection with a call for jobs or stops is a sign about the worker.
std::shared_ptr<const ConnectionOwner> openConnection(RemoteRegistry& registry, const RemoteWorkerKey& key,
                                                      WorkerCall call) {
  bool isKnown = false;
  registry.change([&](RemoteState& state, Instant /*now*/, RemoteChanges& /*changes*/) {
    RemoteWorker* const worker = state.table.find(key);
    isKnown = worker != nullptr;
    if (isKnown) worker->link.noteOpened();
  });
  return isKnown ? std::make_shared<Owner>(registry, key, call == WorkerCall::question) : nullptr;
}

}  // namespace jobq

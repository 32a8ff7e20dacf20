// The life of the server's node in the storage (`jobq/node_store.h`): all leases of the node depend on the life.
#pragma once

#include <atomic>
#include <set>
#include <string>
#include <utility>

#include "core/workers/node/node_lives.h"
#include "core/workers/node/node_share.h"
#include "jobq/holder.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"

namespace jobq {

/// Any thread. A fenced node must not claim and must get no requests (`core/workers/lease_keeper.h`).
class NodeLife {
 public:
  /// `name` is the name of the node. The storage outlives the object.
  NodeLife(Storage& storage, std::string name) : storage_(storage), name_(std::move(name)) {}

  /// Begins a life of the node, and ends the earlier life. Called before the first claim. Throws StorageError.
  void join();

  /// Ends the life. Throws StorageError.
  void leave();

  /// Returns the current life, the holder of all claims.
  Holder holder() const;

  const std::string& name() const { return name_; }

  /// Sets the place of the node among the living nodes.
  void setShare(const NodeShare& share);
  NodeShare share() const;

  /// Sets the lives of all nodes, by the last answer of the storage (`core/workers/lease_keeper.h`).
  void setLives(NodeLives lives);
  NodeLives lives() const;

  void setFenced(bool fenced) { isFenced_ = fenced; }
  /// Is true while the node may have lost the life.
  const std::atomic<bool>& isFenced() const { return isFenced_; }

  /// Sets the names of the nodes that drain (`core/workers/node/node_drains.h`).
  void setDrained(const std::set<std::string>& nodes);
  /// Is true while the node drains.
  const std::atomic<bool>& isDrained() const { return isDrained_; }
  bool isDrained(const std::string& node) const;

  /// Returns false while the node is fenced or drains.
  bool mayClaim() const { return !isFenced_ && !isDrained_; }

 private:
  Storage& storage_;
  const std::string name_;
  std::atomic<bool> isFenced_ = false;
  std::atomic<bool> isDrained_ = false;
  mutable Mutex mutex_;
  Holder holder_ JOBQ_GUARDED_BY(mutex_);
  NodeShare share_ JOBQ_GUARDED_BY(mutex_);
  NodeLives lives_ JOBQ_GUARDED_BY(mutex_);
  std::set<std::string> drained_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq

// The owner of a connection, and what the end of the connection says about the owner
// (core/decisions/remote_workers.md).
#pragma once

#include <chrono>
#include <memory>

#include "core/base/clock.h"
#include "core/base/connection_owner.h"

namespace jobq {

class ByteStream;

/// One thread at a time. The destructor tells the owner how the connection has ended: in order, unless a function has
/// noted that the client has broken the connection off.
class ConnectionOwnership {
 public:
  /// `time` outlives the object.
  explicit ConnectionOwnership(const TimeSource& time) noexcept : time_(time) {}
  ~ConnectionOwnership() {
    if (owner_) owner_->noteEnd(end_);
  }
  ConnectionOwnership(const ConnectionOwnership&) = delete;
  ConnectionOwnership& operator=(const ConnectionOwnership&) = delete;

  /// Returns the owner, null for none; a request sets the owner.
  std::shared_ptr<const ConnectionOwner>& owner() noexcept { return owner_; }
  const std::shared_ptr<const ConnectionOwner>& owner() const noexcept { return owner_; }

  /// Notes that an answer has left: the connection is idle until the next request.
  void noteAnswer() noexcept {
    if (owner_) idleSince_ = time_.steady();
  }
  /// Notes that the client has broken off a request or its answer.
  void noteTorn() noexcept { end_ = ConnectionEnd::torn; }
  /// Notes that the client has closed the connection. `isIdle` is true between two requests.
  void noteClosed(const ByteStream& stream, bool isIdle) noexcept;

 private:
  const TimeSource& time_;
  std::shared_ptr<const ConnectionOwner> owner_;
  std::chrono::steady_clock::time_point idleSince_{};
  ConnectionEnd end_ = ConnectionEnd::inOrder;
};

}  // namespace jobq

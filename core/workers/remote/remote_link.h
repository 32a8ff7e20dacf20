// The connections of a remote worker, and what the ends of the connections say about the worker
// (core/decisions/remote_workers.md). Plain state, guarded by the mutex of RemoteRegistry.
#pragma once

#include <cstddef>
#include <optional>

#include "core/base/connection_owner.h"
#include "jobq/time.h"

namespace jobq {

/// Not thread-safe. A call of the worker at any node makes the state open. The end of the last connection makes the
/// state torn if any node saw a torn connection of the worker at about the same time, and ended otherwise. The state
/// exited is final.
class RemoteLink {
 public:
  enum class State {
    unseen,  ///< no call of the worker in the server's current life
    open,    ///< the worker has a connection to at least one node
    ended,   ///< all connections have ended in order; the pings list the jobs of the worker
    torn,    ///< the process of the worker has probably ended
    exited   ///< the process has ended
  };

  /// A worker without a connection for so long has lost all jobs that are in no ping.
  static constexpr Millis kUnseen{10'000};
  /// A job that was in no ping for so long is lost: two intervals of pings, and the way of the last ping.
  static constexpr Millis kTwoMissedPings{22'000};

  /// Begins the record of a worker. The time without a connection runs from `now` on.
  void begin(Instant now) noexcept { endedAt_ = now; }

  /// Notes a connection to this node with a call of the worker.
  void noteOpened() noexcept;
  /// Notes the end of a connection to this node. Returns true if no connection to this node is left.
  bool noteEnded(ConnectionEnd end, Instant now) noexcept;
  /// Notes whether another node has a connection of the worker, or has seen a torn connection.
  void noteElsewhere(bool isOpen, bool isTorn, Instant now) noexcept;
  void noteExit() noexcept { state_ = State::exited; }

  State state() const noexcept { return state_; }
  bool isOpenHere() const noexcept { return here_ > 0; }
  bool isOpenElsewhere() const noexcept { return isOpenElsewhere_; }
  /// Returns true if the worker has called in the server's current life, and has no connection here now: the worker can
  /// take no job.
  bool isClosedHere() const noexcept { return here_ == 0 && state_ != State::unseen; }
  /// Returns true if the worker has a connection here, or may come back after the end of the last connection.
  bool isPresent(Instant now) const noexcept {
    return here_ > 0 || (state_ != State::exited && now < endedAt_ + kUnseen);
  }
  /// Returns true if the worker has a connection here, or a connection has ended here in order in the last `time`.
  bool wasOpenHere(Millis time, Instant now) const noexcept;

  /// Returns true if the worker has lost a job that was handed out or last listed by a ping at `listedAt`.
  bool hasLost(Instant listedAt, Instant now) const noexcept;

 private:
  void follow(Instant now) noexcept;

  State state_ = State::unseen;
  std::size_t here_ = 0;  // open connections to this node
  bool isOpenElsewhere_ = false;
  bool isTornElsewhere_ = false;
  Instant endedAt_{};                 // end of the last connection, here or elsewhere
  std::optional<Instant> endedHere_;  // end of the last connection here, unless torn
  std::optional<Instant> tornAt_;     // last torn connection since the last call here
};

}  // namespace jobq

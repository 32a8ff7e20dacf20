// Calls that wait for an event without a thread, and the interface that continues them.
#pragma once

#include <cstdint>

namespace jobq {

/// Continues suspended calls. Any thread. Outlives every thread that may continue a call.
class CallResumer {
 public:
  virtual ~CallResumer() = default;

  /// Continues the call on another thread. Never waits. Changes nothing if the call has ended. A call that has not been
  /// suspended yet continues as soon as it is suspended, so no event between its last check and the suspension is lost;
  /// a call may therefore continue without a new event.
  virtual void resume(std::uint64_t call) noexcept = 0;

  /// Does the same, but may continue the call on the calling thread, which then sends the answer before the function
  /// returns. Called without a lock.
  virtual void continueHere(std::uint64_t call) noexcept { resume(call); }

  /// Continues the call as resume() does, but on the reactor thread: one thread switch for all calls that are
  /// continued together. The rest of the call must not block.
  virtual void resumeAtReactor(std::uint64_t call) noexcept { resume(call); }
};

/// The name of a call for its resumer. A value: the call may have ended.
struct SuspendedCall {
  CallResumer* resumer = nullptr;
  std::uint64_t id = 0;

  /// Continues the call as CallResumer::resume() does.
  void resume() const noexcept { resumer->resume(id); }
  /// Continues the call as CallResumer::continueHere() does.
  void continueHere() const noexcept { resumer->continueHere(id); }
  /// Continues the call as CallResumer::resumeAtReactor() does.
  void resumeAtReactor() const noexcept { resumer->resumeAtReactor(id); }
};

}  // namespace jobq

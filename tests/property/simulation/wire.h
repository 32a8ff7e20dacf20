// The way between a node and the shared storage. The way may be cut, lose a request or an answer, or be slow; the node
// may die or stop during a call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "jobq/time.h"
#include "testkit/forwarding_storage.h"

namespace jobq::model {

/// Fate of a call.
enum class WireFault : std::uint8_t {
  refused,      ///< the call fails and changes nothing
  requestLost,  ///< the call is not done, and the node cannot know
  answerLost,   ///< the call is done, and the node cannot know
  slowRequest,  ///< time passes before the call is done; the other threads of the node go on
  slowAnswer,   ///< time passes before the answer comes; the other threads of the node go on
  pause,        ///< the whole process stands still between the call and its answer
  crash         ///< the process dies between the call and its answer
};

/// Consequences of a fault beyond the call.
class WireEvents {
 public:
  virtual ~WireEvents() = default;
  /// Lets time pass while the call is under way; the whole process may stand still.
  virtual void passDuringCall(Millis time, bool standsStill) = 0;
  /// Ends the process: no later call reaches the storage.
  virtual void die() = 0;
  /// Told of each call before it is made.
  virtual void beforeCall(std::string_view operation) = 0;
  /// Told of the begin and the end of the step in the storage.
  virtual void enterStorage(bool inside) = 0;
};

/// Confined to one thread.
class Wire final : public testkit::CallHook {
 public:
  explicit Wire(WireEvents& events) : events_(events) {}

  /// Lets `times` calls of `operation` (of any operation, if empty) fail, from the `skipped`-th next call on.
  struct Plan {
    WireFault fault{};
    std::string operation;
    std::uint32_t skipped = 0;
    std::uint32_t times = 1;
    Millis time{0};
  };
  void plan(Plan plan) { plan_ = std::move(plan); }
  /// Refuses each call of `operation` (each call, if empty) until mend().
  void cut(std::string operation) {
    isCut_ = true;
    cutOperation_ = std::move(operation);
  }
  void mend() {
    isCut_ = false;
    plan_.times = 0;
  }
  /// Refuses each call for ever: the process is dead.
  void close() { isClosed_ = true; }
  /// Opens the way for a new process.
  void open() { isClosed_ = false; }
  bool isClosed() const { return isClosed_; }
  std::uint64_t faults() const { return faults_; }

  /// Makes a call of the storage, with the planned fault.
  void around(const char* operation, const std::function<bool()>& call) override;

 private:
  bool begin(std::string_view operation);
  void end(std::string_view operation);
  bool isHit(std::string_view operation);
  void refuseIfCut(std::string_view operation) const;

  WireEvents& events_;
  Plan plan_{{}, {}, 0, 0, Millis(0)};
  bool isCut_ = false;
  std::string cutOperation_;
  bool isClosed_ = false;
  bool isSlow_ = false;  // a call passes time: calls made meanwhile have no fault of their own
  std::uint64_t faults_ = 0;
};

}  // namespace jobq::model

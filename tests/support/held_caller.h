// A caller of jobs, waiting on the thread of a test in the place of a suspended call of the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <utility>

#include "core/base/connection_owner.h"
#include "core/base/suspended_call.h"
#include "core/http/transport/connected_client.h"
#include "core/jobs/completion_notifier.h"
#include "jobq/mutex.h"
#include "jobq/time.h"
#include "testkit/wait_for.h"

namespace jobq::test {

class HeldCaller;

/// Continues the callers of all tests. The object is never destroyed, because a thread may continue an ended call
/// without a caller.
class HeldCallers final : public CallResumer {
 public:
  static HeldCallers& all() {
    static auto& callers = *new HeldCallers;
    return callers;
  }
  /// Returns the id of the caller's calls.
  std::uint64_t add(HeldCaller& caller) {
    Lock lock(mutex_);
    callers_.emplace(++lastId_, &caller);
    return lastId_;
  }
  void remove(std::uint64_t id) noexcept {
    Lock lock(mutex_);
    callers_.erase(id);
  }
  void resume(std::uint64_t id) noexcept override;

 private:
  Mutex mutex_;
  std::uint64_t lastId_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, HeldCaller*> callers_ JOBQ_GUARDED_BY(mutex_);
};

/// One thread at a time waits, and throws WaitExpired if no event comes. Any thread calls leave() and noteResumed().
class HeldCaller final : public ConnectedClient {
 public:
  HeldCaller() : id_(HeldCallers::all().add(*this)) {}
  ~HeldCaller() override { HeldCallers::all().remove(id_); }
  HeldCaller(const HeldCaller&) = delete;
  HeldCaller& operator=(const HeldCaller&) = delete;

  void setOwner(std::shared_ptr<const ConnectionOwner> owner) noexcept override { owner_.swap(owner); }

  /// Returns true if the call was resumed since the last wait.
  bool isResumed() const {
    Lock lock(mutex_);
    return resumed_;
  }

  /// Ends the waits, as a closing client does.
  void leave() {
    Lock lock(mutex_);
    left_ = resumed_ = true;
    changed_.notifyAll();
    source_.request_stop();
  }

  /// Polls until the wait has a result, and returns the result. `wait` has a function poll(WaitingCaller).
  template <class Wait>
  auto complete(Wait& wait) {
    return whenReady([&] { return wait.poll(waitingCaller()); });
  }
  /// Calls `poll` until the result is not empty, and returns the result.
  template <class Poll>
  auto whenReady(Poll poll) {
    for (;;) {
      if (auto result = poll()) return std::move(*result);
      awaitResume();
    }
  }
  /// Returns true when the waiter has an event, or false when the wait is over.
  bool awaitEvent(CompletionNotifier::Waiter& waiter, Instant deadline, std::size_t bytes = 0) {
    for (;;) {
      const auto progress = waiter.poll(deadline, waitingCaller(), bytes);
      if (progress != CompletionNotifier::Progress::pending) return progress == CompletionNotifier::Progress::event;
      awaitResume();
    }
  }

  WaitingCaller waitingCaller() { return {call(), hasLeft()}; }

  void noteResumed() noexcept {
    Lock lock(mutex_);
    resumed_ = true;
    changed_.notifyAll();
  }

  std::stop_token disconnected() override { return source_.get_token(); }
  bool hasLeft() const noexcept override {
    Lock lock(mutex_);
    return left_;
  }
  SuspendedCall call() noexcept override { return {&HeldCallers::all(), id_}; }
  bool mayBlock() const noexcept override { return mayBlock_; }
  /// Marks the caller's thread as a thread that must not block.
  void forbidBlocking() noexcept { mayBlock_ = false; }

 private:
  std::shared_ptr<const ConnectionOwner> owner_;
  void awaitResume() {
    testkit::WaitDeadline wait("the resumption of a suspended call");
    Lock lock(mutex_);
    while (!resumed_) wait.on(changed_, mutex_);
    resumed_ = false;
  }

  const std::uint64_t id_;
  mutable Mutex mutex_;
  Condition changed_;
  bool resumed_ JOBQ_GUARDED_BY(mutex_) = false;
  bool left_ JOBQ_GUARDED_BY(mutex_) = false;
  std::stop_source source_;
  bool mayBlock_ = true;
};

inline void HeldCallers::resume(std::uint64_t id) noexcept {
  Lock lock(mutex_);
  if (const auto caller = callers_.find(id); caller != callers_.end()) caller->second->noteResumed();
}

}  // namespace jobq::test

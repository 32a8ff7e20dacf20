// The clock of a server in a test of several servers.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "jobq/mutex.h"
#include "jobq/time.h"
#include "testkit/manual_clock.h"

namespace jobq::test {

/// A clock moved by hand that knows the threads woken by the last move: such a thread has work to do until the next
/// wait for the clock. Without the knowledge a test moves seconds on while a periodic task gets no processor, and sees
/// news, beats and sweeps later than on a real server. Any thread.
class SettlingClock final : public Clock {
 public:
  Instant now() const override { return clock_.now(); }

  void waitUntil(Mutex& mutex, Condition& condition, Instant deadline) override JOBQ_REQUIRES(mutex) {
    const auto self = std::this_thread::get_id();
    {
      const Lock lock(mutex_);
      awake_.erase(self);
      waits_[self] = deadline;
      changed_.notifyAll();
    }
    clock_.waitUntil(mutex, condition, deadline);
    const bool isOver = clock_.now() >= deadline;
    const Lock lock(mutex_);
    waits_.erase(self);
    if (isOver) awake_.insert(self);
    changed_.notifyAll();
  }

  void advance(Millis by) { clock_.advance(by); }

  /// Blocks until each thread whose wait is over waits for the clock again. The wait for a thread that has ended, or
  /// waits for a different event, is given up after `most` of real time.
  void awaitSettled(std::chrono::milliseconds most = std::chrono::milliseconds(1'000)) {
    const auto end = std::chrono::steady_clock::now() + most;
    const Instant moment = clock_.now();
    Lock lock(mutex_);
    while (!isSettled(moment)) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left.count() <= 0) {
        awake_.clear();
        return;
      }
      changed_.waitFor(mutex_, left);
    }
  }

 private:
  bool isSettled(Instant moment) const JOBQ_REQUIRES(mutex_) {
    if (!awake_.empty()) return false;
    for (const auto& [thread, deadline] : waits_) {
      if (deadline <= moment) return false;
    }
    return true;
  }

  testkit::ManualClock clock_;
  Mutex mutex_;
  Condition changed_;
  std::map<std::thread::id, Instant> waits_ JOBQ_GUARDED_BY(mutex_);
  std::set<std::thread::id> awake_ JOBQ_GUARDED_BY(mutex_);  // threads whose wait is over
};

}  // namespace jobq::test

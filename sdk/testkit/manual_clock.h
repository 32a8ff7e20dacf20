// A clock that tests move by hand. Every wait in the server goes through Clock::waitUntil, so a test lets seven days
// pass in microseconds, and no test sleeps.
#pragma once

#include <chrono>
#include <list>
#include <string>

#include "jobq/mutex.h"
#include "jobq/time.h"
#include "testkit/wait_for.h"

namespace jobq::testkit {

/// Any thread. The time starts at 2026-01-01T00:00:00Z.
class ManualClock final : public Clock {
 public:
  Instant now() const override {
    Lock lock(mutex_);
    return now_;
  }

  // A wait is listed before the wait reads the time, and advance() locks the mutex of the wait before the notification.
  // A listed wait therefore either reads the new time or is blocked already, and no notification is lost.
  void waitUntil(Mutex& mutex, Condition& condition, Instant deadline) override JOBQ_REQUIRES(mutex) {
    std::list<Waiter>::iterator self;
    {
      Lock lock(mutex_);
      if (now_ >= deadline) return;
      self = waiters_.insert(waiters_.end(), Waiter{&mutex, &condition, deadline, 0});
      changed_.notifyAll();
    }
    condition.wait(mutex);
    leave(mutex, self);
  }

  /// Moves time forward by `by` milliseconds and wakes each wait whose deadline is reached, as a clock of the system
  /// does. (A wake of all waits would hide a thread that waits for too long, and costs a test of many threads minutes.)
  void advance(Millis by) {
    Lock lock(mutex_);
    now_ += by;
    for (auto waiter = waiters_.begin(); waiter != waiters_.end(); ++waiter) {
      if (waiter->deadline > now_) continue;
      ++waiter->pinned;
      lock.unlock();
      waiter->mutex->lock();
      waiter->mutex->unlock();
      waiter->condition->notifyAll();
      lock.lock();
      --waiter->pinned;
      changed_.notifyAll();
    }
  }

  /// Blocks until at least `count` waits have deadlines within [now + from, now + to]: a test learns so that the waits
  /// have begun. Throws WaitExpired after `within` of real time, with a list of the present waits.
  void awaitWaiter(Millis from, Millis to, int count = 1, std::chrono::seconds within = kHangDeadline) {
    WaitDeadline wait(std::to_string(count) + " waits that end in " + std::to_string(from.count()) + " to " +
                          std::to_string(to.count()) + " ms of the manual clock",
                      within);
    Lock lock(mutex_);
    while (waitsWithin(from, to) < count) {
      if (wait.isOver()) wait.expire(listWaits());
      wait.on(changed_, mutex_);
    }
  }

 private:
  struct Waiter {
    Mutex* mutex;
    Condition* condition;
    Instant deadline;
    int pinned;  // number of advance() calls that use the pointers
  };

  int waitsWithin(Millis from, Millis to) const JOBQ_REQUIRES(mutex_) {
    int found = 0;
    for (const Waiter& waiter : waiters_) {
      if (waiter.deadline >= now_ + from && waiter.deadline <= now_ + to) ++found;
    }
    return found;
  }

  std::string listWaits() const JOBQ_REQUIRES(mutex_) {
    std::string ends = "there are waits that end in";
    for (const Waiter& waiter : waiters_) ends += " " + std::to_string((waiter.deadline - now_).count());
    return ends + " ms";
  }

  // Removes a wait from the list. The mutex of the wait is unlocked meanwhile, because advance() may be waiting for the
  // mutex.
  void leave(Mutex& mutex, std::list<Waiter>::iterator self) JOBQ_REQUIRES(mutex) {
    mutex.unlock();
    {
      Lock lock(mutex_);
      while (self->pinned > 0) changed_.wait(mutex_);
      waiters_.erase(self);
    }
    mutex.lock();
  }

  mutable Mutex mutex_;
  Condition changed_;
  Instant now_ JOBQ_GUARDED_BY(mutex_) = fromEpochMillis(1'767'225'600'000);
  std::list<Waiter> waiters_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::testkit

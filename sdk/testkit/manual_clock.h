// A clock that moves only when told. Every wait in the server goes through Clock::waitUntil, so a test lets seven days
// pass in microseconds, and no test sleeps.
#pragma once

#include <chrono>
#include <list>
#include <string>

#include "jobq/mutex.h"
#include "jobq/time.h"
#include "testkit/wait_for.h"

namespace jobq::testkit {

/// Any thread. Starts at 2026-01-01T00:00:00Z.
class ManualClock final : public Clock {
 public:
  Instant now() const override {
    Lock lock(mutex_);
    return now_;
  }

  // A waiter is listed before the time is looked at, and advance() takes the waiter's own mutex before it notifies:
  // whoever is listed either sees the new time or is waiting already. No wake-up is lost.
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

  /// Moves time forward and wakes every waiter; each decides for itself.
  void advance(Millis by) {
    Lock lock(mutex_);
    now_ += by;
    for (auto waiter = waiters_.begin(); waiter != waiters_.end(); ++waiter) {
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

  /// Blocks until `count` waits are for a moment within [now + from, now + to]: how a test knows that they have begun.
  /// Throws WaitExpired after `within` of real time, with the waits that there are.
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
    int pinned;  // advance() is using the pointers
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

  // The waiter's own mutex is let go meanwhile, because advance() may be waiting for it.
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

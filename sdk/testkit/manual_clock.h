// A clock that tests move by hand. Every wait in the server goes through Clock::waitUntil, so a test lets seven days
// pass in microseconds, and no test sleeps.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <string_view>

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

  std::optional<Millis> lead() const override {
    Lock lock(mutex_);
    return lead_;
  }
  void setLead(std::optional<Millis> lead) {
    Lock lock(mutex_);
    lead_ = lead;
  }

  // A wait is listed before the wait reads the time, and advance() locks the mutex of the wait before the notification.
  // A listed wait therefore either reads the new time or is blocked already, and no notification is lost.
  void waitUntil(Mutex& mutex, Condition& condition, Instant deadline) override JOBQ_REQUIRES(mutex) {
    std::list<Waiter>::iterator self;
    {
      Lock lock(mutex_);
      if (now_ >= deadline) return;
      self = waiters_.insert(waiters_.end(), Waiter{&mutex, &condition, deadline, 0, nameOfThread()});
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

  /// Blocks until a thread with this name (pthread_setname_np) waits for a time after the present one: the thread has
  /// done its work for the time of the last advance(). Throws WaitExpired after kHangDeadline of real time.
  void awaitThread(std::string_view name) {
    WaitDeadline wait("the thread " + std::string(name) + " to wait for a later time of the manual clock");
    const auto waitsForLater = [&](const Waiter& waiter) JOBQ_REQUIRES(mutex_) {
      return waiter.deadline > now_ && name == waiter.thread.data();
    };
    Lock lock(mutex_);
    while (std::none_of(waiters_.begin(), waiters_.end(), waitsForLater)) {
      if (wait.isOver()) wait.expire(listWaits());
      wait.on(changed_, mutex_);
    }
  }

 private:
  using ThreadName = std::array<char, 16>;  // the longest name of a thread, with its end

  struct Waiter {
    Mutex* mutex;
    Condition* condition;
    Instant deadline;
    int pinned;  // number of advance() calls that use the pointers
    ThreadName thread;
  };

  static ThreadName nameOfThread() {
    ThreadName name{};
    pthread_getname_np(pthread_self(), name.data(), name.size());
    return name;
  }

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
  std::optional<Millis> lead_ JOBQ_GUARDED_BY(mutex_) = Millis::zero();
  std::list<Waiter> waiters_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::testkit

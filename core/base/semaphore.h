// A counter of events, for a thread that wakes often.
#pragma once

#include <semaphore.h>
#include <sys/prctl.h>

namespace jobq {

/// Counts events for a thread that awaits them. Any thread. The destructor may run as soon as wait() has returned, also
/// while the post() of the event returns. Costs less than a Condition: a thread behind Condition::wait() makes a
/// further system call when it unlocks the mutex, and often wakes twice, because the notifying thread still holds the
/// mutex.
///
/// (std::counting_semaphore of libstdc++ 12 spins and yields before it sleeps, at the cost of a fifth of the work on
/// two cores.)
class Semaphore {
 public:
  Semaphore() noexcept { ::sem_init(&native_, 0, 0); }
  ~Semaphore() { ::sem_destroy(&native_); }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  /// Adds an event.
  void post() noexcept { ::sem_post(&native_); }
  /// Blocks until there is an event, and removes the event.
  void wait() noexcept {
    while (::sem_wait(&native_) != 0) continue;  // a signal handler has run
  }

 private:
  sem_t native_{};
};

/// Gives the process a table of 4,096 places for waiting threads. Linux since 6.16 gives a process four places for each
/// processor, and a wake looks at all waiting threads of a place: with 10,000 idle workers the wakes took most of the
/// processors. Without effect on other kernels. Called once, at the start. Any thread.
inline void widenWaitTable() noexcept {
  constexpr int kFutexHash = 78;  // PR_FUTEX_HASH and PR_FUTEX_HASH_SET_SLOTS, which older headers lack
  constexpr unsigned long kSetSlots = 1;
  constexpr unsigned long kSlots = 4'096;
  (void)::prctl(kFutexHash, kSetSlots, kSlots, 0UL, 0UL);
}

}  // namespace jobq

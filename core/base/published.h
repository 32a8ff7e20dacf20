// A value that everybody reads and somebody replaces now and then: every request asks for it, so readers on different
// threads share no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "jobq/mutex.h"

namespace jobq {

/// Any thread. Whoever has got the value keeps it as it was, however often it is replaced.
template <class Value>
class Published {
 public:
  using Pointer = std::shared_ptr<const Value>;

  /// Null before the first set().
  Pointer get() const {
    static std::atomic<std::size_t> seats = 0;
    thread_local const std::size_t kSeat = seats++;
    const Desk& desk = desks_[kSeat % desks_.size()];
    Lock lock(desk.mutex);
    return desk.value;
  }

  void set(const Pointer& value) {
    setIf(value, [](const Value&) { return true; });
  }

  /// Replaces the value where `isOlder(present)`: of several that set, the newest one stays.
  template <class IsOlder>
  void setIf(const Pointer& value, IsOlder&& isOlder) {
    for (Desk& desk : desks_) {
      Lock lock(desk.mutex);
      if (!desk.value || isOlder(*desk.value)) desk.value = value;
    }
  }

 private:
  // Where some of the threads find it.
  struct alignas(64) Desk {
    mutable Mutex mutex;
    Pointer value JOBQ_GUARDED_BY(mutex);
  };
  std::array<Desk, 16> desks_;
};

}  // namespace jobq

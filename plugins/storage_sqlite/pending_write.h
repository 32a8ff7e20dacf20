// Writes that wait for their commit by the writer (`writer.h`).
#pragma once

#include <semaphore.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>

#include "step.h"

namespace jobq::sqlite {

/// An event that one thread awaits. The event comes once. The awaiting thread may destroy the object behind await(),
/// also while set() returns.
///
/// A std::binary_semaphore of libstdc++ spins and yields before sleeping, at the cost of a fifth of the work on two
/// cores. With a mutex and a condition variable the waiting thread mostly wakes twice: the notifying thread, which has
/// to hold the mutex until the end of the notification, keeps the mutex from it.
class DoneSignal {
 public:
  DoneSignal() noexcept;
  ~DoneSignal();
  DoneSignal(const DoneSignal&) = delete;
  DoneSignal& operator=(const DoneSignal&) = delete;

  void set() noexcept;
  void await() noexcept;

 private:
  sem_t semaphore_{};
};

/// A write of a caller, who waits for awaitDone() and owns the object.
struct PendingWrite {
  virtual ~PendingWrite() = default;
  /// Makes the change in the open transaction. Called once or twice. Throws the exceptions of the caller's operation.
  virtual void apply(Step& step) = 0;

  /// Blocks until markDone(), and then wakes the followers.
  void awaitDone();
  void markDone();
  /// Marks all writes of the list `group` as done.
  static void markAllDone(PendingWrite* group);

  std::size_t bytes = 0;
  bool needsSync = true;
  PendingWrite* next = nullptr;
  PendingWrite* followers = nullptr;    // a list linked by `next`; notified by the thread of this write
  std::exception_ptr error;             // error of the write alone
  std::optional<std::string> lostWith;  // error of the whole group; absent after a commit

 private:
  DoneSignal done_;
};

/// Waiting writes in the order of their arrival. Not thread-safe.
class WriteQueue {
 public:
  bool isEmpty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  void push(PendingWrite& write);
  /// Removes and returns the first writes with up to `bytes` bytes together, at least a single write.
  PendingWrite* pop(std::size_t bytes);

 private:
  PendingWrite* first_ = nullptr;
  PendingWrite* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace jobq::sqlite

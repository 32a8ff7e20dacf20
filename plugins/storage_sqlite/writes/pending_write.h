// Writes that wait for their commit by the writer (`writer.h`).
#pragma once

#include <semaphore.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "writes/step.h"

namespace jobq::sqlite {

/// Wakes one thread, once. The waiting thread may destroy the object behind await(), also while set() returns. The
/// server has a class of the same kind (core/base/semaphore.h), but a plugin includes the sdk only.
///
/// A mutex and a condition variable would cost a further system call for each write, and mostly a second waking: the
/// notifying thread still holds the mutex. A std::binary_semaphore of libstdc++ 12 spins and yields before it sleeps,
/// at the cost of a fifth of the work on two cores.
class DoneSignal {
 public:
  DoneSignal() noexcept { ::sem_init(&semaphore_, 0, 0); }
  ~DoneSignal() { ::sem_destroy(&semaphore_); }
  DoneSignal(const DoneSignal&) = delete;
  DoneSignal& operator=(const DoneSignal&) = delete;

  void set() noexcept { ::sem_post(&semaphore_); }
  void await() noexcept {
    while (::sem_wait(&semaphore_) != 0) continue;  // a signal handler has run
  }

 private:
  sem_t semaphore_{};
};

/// A write. A caller owns the object and waits for awaitDone(), or commits the write (`write_turns.h`); or nobody
/// waits, and the object owns itself until end().
struct PendingWrite {
  virtual ~PendingWrite() = default;
  /// Makes the change in the open transaction. Called once or several times. Throws the exceptions of the caller's
  /// operation.
  virtual void apply(Step& step) = 0;

  /// Blocks until markDone(), and then wakes the followers.
  void awaitDone();
  void markDone();
  /// Marks all writes of the list `group` as done; the writes of their own end.
  static void markAllDone(PendingWrite* group);
  /// Ends a write of its own, whose object may be destroyed by the call. Called once, by the writer's thread.
  virtual void end() noexcept {}

  std::size_t bytes = 0;
  bool needsSync = true;
  bool changesNothing = false;  // only the sync is wanted, which needs no transaction
  bool isAwaited = true;        // false: end() follows instead of markDone()
  PendingWrite* next = nullptr;
  PendingWrite* followers = nullptr;    // a list linked by `next`; notified by the thread of this write
  std::exception_ptr error;             // error of the write alone
  std::optional<std::string> lostWith;  // error of the whole group; absent after a commit, or after the sync that a
                                        // write without changes has waited for

 private:
  static void wakeAll(PendingWrite* group);

  DoneSignal done_;
};

/// A write that brings the unsynced jobs of all earlier groups to the disk, and changes nothing.
struct SyncAlone final : PendingWrite {
  SyncAlone() { changesNothing = true; }
  void apply(Step&) override {}
};

/// Waiting writes in the order of their arrival. Not thread-safe.
class WriteQueue {
 public:
  bool isEmpty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  void push(PendingWrite& write);
  /// Removes and returns the first writes with up to `bytes` bytes together, at least a single write.
  PendingWrite* pop(std::size_t bytes);
  /// Removes and returns all writes.
  PendingWrite* popAll() {
    size_ = 0;
    return std::exchange(first_, nullptr);
  }

 private:
  PendingWrite* first_ = nullptr;
  PendingWrite* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace jobq::sqlite

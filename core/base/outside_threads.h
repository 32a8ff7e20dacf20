// The threads of other owners inside an object: the owner of the object waits for the end of such calls.
#pragma once

#include "jobq/mutex.h"

namespace jobq {

/// Lets threads in until close(), and counts them. Any thread.
class OutsideThreads {
 public:
  /// Counts the calling thread during its life, unless close() was called before.
  class Entry {
   public:
    explicit Entry(OutsideThreads& threads) : threads_(threads), isAllowed_(threads.enter()) {}
    ~Entry() {
      if (isAllowed_) threads_.leave();
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    /// Returns false after close(): the thread is not counted, and must not go on.
    bool isAllowed() const noexcept { return isAllowed_; }

   private:
    OutsideThreads& threads_;
    const bool isAllowed_;
  };

  /// Lets no further thread in, and blocks until the present ones have left.
  void close() {
    Lock lock(mutex_);
    closed_ = true;
    while (count_ > 0) changed_.wait(mutex_);
  }

 private:
  bool enter() {
    Lock lock(mutex_);
    if (!closed_) ++count_;
    return !closed_;
  }
  void leave() {
    Lock lock(mutex_);
    if (--count_ == 0) changed_.notifyAll();
  }

  Mutex mutex_;
  Condition changed_;
  int count_ JOBQ_GUARDED_BY(mutex_) = 0;
  bool closed_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq

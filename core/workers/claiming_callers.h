// The threads of callers and of workers that claim jobs for themselves.
#pragma once

#include "jobq/mutex.h"

namespace jobq {

/// Counts the claiming callers until close(). Any thread.
class ClaimingCallers {
 public:
  /// Counts the calling thread during its life, unless close() was called before.
  class Entry {
   public:
    explicit Entry(ClaimingCallers& callers) : callers_(callers), isAllowed_(callers.enter()) {}
    ~Entry() {
      if (isAllowed_) callers_.leave();
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    /// Returns false after close(): the thread must not claim.
    bool isAllowed() const noexcept { return isAllowed_; }

   private:
    ClaimingCallers& callers_;
    const bool isAllowed_;
  };

  /// Allows no further caller, and blocks until the present ones have left.
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

// The request that ends the program.
#pragma once

#include <csignal>
#include <optional>
#include <string>

#include "jobq/mutex.h"

namespace jobq::worker {

/// SIGTERM, SIGINT, or a fault after which no thread can go on. One object in a process.
class EndRequest {
 public:
  /// Blocks the two signals in the calling thread and in all threads that it starts later.
  EndRequest();

  /// Requests the end because of a fault. The first reason counts. Any thread.
  void fail(const std::string& reason);

  /// Blocks until the end is requested. One thread.
  void await();

  /// Returns the reason if a fault has requested the end. Any thread.
  std::optional<std::string> failure() const;

 private:
  sigset_t signals_{};
  mutable Mutex mutex_;
  std::optional<std::string> failure_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::worker

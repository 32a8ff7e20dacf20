// The request that ends the program.
#pragma once

#include <optional>
#include <string>

#include "core/process/process_signals.h"
#include "jobq/mutex.h"

namespace jobq::worker {

/// SIGTERM, SIGINT, or a fault after which no thread can go on. A process has at most one object at a time.
class EndRequest {
 public:
  EndRequest();

  /// Requests the end because of a fault. The first reason counts. Any thread.
  void fail(const std::string& reason);

  /// Blocks until the end is requested. One thread.
  void await();

  /// Returns the reason if a fault has requested the end. Any thread.
  std::optional<std::string> failure() const;

 private:
  const ProcessSignals signals_;
  mutable Mutex mutex_;
  std::optional<std::string> failure_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::worker

// The bell between the registry and the dispatcher of one node: "a job may be waiting at this endpoint".
#pragma once

#include <set>
#include <string>

#include "jobq/time.h"

namespace jobq {

/// Any thread rings; one thread listens. A ring is never lost: it stays until it was taken.
class Wakeup {
 public:
  /// A job was put in line at `endpoint`.
  void ring(const std::string& endpoint);

  /// Something else happened that the listener should look at.
  void nudge();

  /// Waits for a ring, a nudge or `deadline`, and takes the endpoints that rang.
  std::set<std::string> wait(Clock& clock, Instant deadline);

 private:
  Mutex mutex_;
  Condition changed_;
  std::set<std::string> rung_ JOBQ_GUARDED_BY(mutex_);
  bool nudged_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq

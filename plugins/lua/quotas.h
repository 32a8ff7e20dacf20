// quota.take() of filters: how often something happened within a time, counted for all filters of this server.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::lua {

/// Any thread.
class Quotas {
 public:
  explicit Quotas(const Clock& clock) : clock_(clock) {}

  /// Counts one more of `name`, of which `most` are free in `window`, which begins with the first. Zero: it was taken;
  /// else none is left for so long.
  Millis reserve(const std::string& name, std::int64_t most, Millis window);

 private:
  struct Count {
    Instant end;
    std::int64_t taken = 0;
  };
  void makeRoom(Instant now) JOBQ_REQUIRES(mutex_);

  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Count> counts_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::lua

// quota.take() of filters: counts how often an event happened within a time, for all filters of the server.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::lua {

/// Any thread. `clock` outlives the object.
class Quotas {
 public:
  explicit Quotas(const Clock& clock) : clock_(clock) {}

  /// Counts one more event of `name` if fewer than `most` were counted in the present window. A window has the length
  /// `window` and begins with its first event. Returns zero if the event was counted, else the time until the window
  /// ends. At most 100,000 names are kept.
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

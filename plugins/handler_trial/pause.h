// Waits for a moment or a stop, whichever comes first, on the server's clock. Tests can therefore move the time by
// hand.
#pragma once

#include <stop_token>
#include <string_view>
#include <utility>

#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::trial {

/// Waits of a single job. Borrows the clock, which must outlive the object. Only the thread of the job may call the
/// methods. The stop token of the job ends every wait, unless `ignoreStop` is set.
class Pause {
 public:
  Pause(Clock& clock, std::stop_token stop, bool ignoreStop)
      : clock_(clock), stop_(ignoreStop ? std::stop_token() : std::move(stop)) {}

  /// Waits for `duration`. Throws JobFailed("the job was stopped while <doing>") if the job is stopped before the time
  /// is over.
  void wait(Millis duration, std::string_view doing);

  /// Waits until a stop, and throws like wait().
  [[noreturn]] void waitForEver(std::string_view doing);

  /// Throws like wait() if the job is stopped already.
  void check(std::string_view doing) const;

 private:
  Clock& clock_;
  std::stop_token stop_;
  Mutex mutex_;
  Condition stopped_;
};

}  // namespace jobq::trial

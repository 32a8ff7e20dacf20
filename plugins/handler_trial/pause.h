// Waiting for a moment or a stop, whichever comes first, on the server's clock: tests move time by hand.
#pragma once

#include <stop_token>
#include <string_view>
#include <utility>

#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::trial {

/// Borrows the clock. One thread. The stop token of the job ends every wait, unless it is ignored.
class Pause {
 public:
  Pause(Clock& clock, std::stop_token stop, bool ignoreStop)
      : clock_(clock), stop_(ignoreStop ? std::stop_token() : std::move(stop)) {}

  /// Throws JobFailed("stopped while <doing>") when the job is stopped before the time is over.
  void wait(Millis duration, std::string_view doing);

  /// Ends only by a stop, as wait() does.
  [[noreturn]] void waitForEver(std::string_view doing);

  /// Throws as wait() does when the job is stopped already.
  void check(std::string_view doing) const;

 private:
  Clock& clock_;
  std::stop_token stop_;
  Mutex mutex_;
  Condition stopped_;
};

}  // namespace jobq::trial

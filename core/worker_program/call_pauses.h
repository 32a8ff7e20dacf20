// Pauses of a thread whose calls to the server fail.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "core/base/backoff.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq::worker {

/// Pauses that grow while the calls of a thread fail. The log gets a line at the first failure and a line at the end of
/// the failures, because the calls may fail for hours.
class CallPauses {
 public:
  /// `calls` names the calls in the log, like "calls for jobs". `clock` and `log` outlive the object. `stop` ends a
  /// pause at once.
  CallPauses(std::string calls, Clock& clock, Log& log, std::stop_token stop);

  /// Blocks after a failed call. `why` is a sentence; an empty text is not logged. Returns false after a stop.
  bool pause(const std::string& why, Instant latest = Instant::max());
  /// Makes the next pause short again, after a call that succeeded.
  void noteSuccess();

 private:
  const std::string calls_;
  Clock& clock_;
  Log& log_;
  const std::stop_token stop_;
  std::optional<Backoff> backoff_;
  bool isLogged_ = false;
};

}  // namespace jobq::worker

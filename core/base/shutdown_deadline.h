// Ends the process when a step of the shutdown does not return, as with a plugin that ignores its stop token.
#pragma once

#include <string>
#include <thread>

#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// Made before the step, destroyed after it, on one thread. When it lives longer than `limit` of real time, it logs
/// `reason` and ends the process with exit code 0, without destructors: what was accepted is stored already, and
/// threads that cannot be ended still run in code that must not be torn down. `log` outlives it.
class ShutdownDeadline {
 public:
  ShutdownDeadline(Millis limit, std::string reason, Log& log);
  ~ShutdownDeadline();
  ShutdownDeadline(const ShutdownDeadline&) = delete;
  ShutdownDeadline& operator=(const ShutdownDeadline&) = delete;

 private:
  void await(Millis limit);

  const std::string reason_;
  Log& log_;
  Mutex mutex_;
  Condition changed_;
  bool isOver_ JOBQ_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace jobq

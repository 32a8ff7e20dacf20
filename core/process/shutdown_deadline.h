// Ends the process when a step of the shutdown does not return, for example because a plugin ignores its stop token.
#pragma once

#include <string>
#include <thread>

#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// One thread makes the object before the step and destroys the object after the step. After `limit` of real time the
/// object logs `reason` and ends the process without destructors, because threads that cannot be ended still run in
/// code that must not be torn down. The exit code is 0, because accepted jobs are stored already. `log` outlives the
/// object.
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
  bool isOver_ JOBQ_GUARDED_BY(mutex_) = false;  // the step has ended in time
  std::thread thread_;
};

}  // namespace jobq

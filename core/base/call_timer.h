// Continues suspended calls at a moment, for calls that wait for nothing else.
#pragma once

#include <map>
#include <vector>

#include "core/base/periodic.h"
#include "core/base/service.h"
#include "core/base/suspended_call.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread. Has a thread of its own that looks once a second.
class CallTimer final : public Service, private PeriodicTask {
 public:
  /// `clock` and `log` outlive the timer.
  CallTimer(Clock& clock, Log& log);
  ~CallTimer() override { stop(); }

  void start() override { periodic_.start(); }
  /// Continues all calls, and ends the thread.
  void stop() override;

  /// Returns true after stop(): no call has to wait any more.
  bool isStopped();

  /// Continues the call at `at` or up to a second later; at once after stop().
  void resumeAt(Instant at, SuspendedCall call);

 private:
  void run() override;
  static void resumeAll(const std::vector<SuspendedCall>& calls) noexcept;

  Clock& clock_;
  Mutex mutex_;
  std::multimap<Instant, SuspendedCall> calls_ JOBQ_GUARDED_BY(mutex_);
  bool isStopped_ JOBQ_GUARDED_BY(mutex_) = false;
  Periodic periodic_;
};

}  // namespace jobq

// Compares the server's clock with the machine's time.
#pragma once

#include "core/base/clock.h"
#include "core/base/periodic.h"
#include "core/base/service.h"
#include "jobq/log.h"

namespace jobq {

/// Lets a clock follow the machine's time every second, and logs a warning when the two differ by a minute; once, until
/// both agree again.
class ClockKeeper final : public Service, private PeriodicTask {
 public:
  /// `clock` and `log` outlive the service.
  ClockKeeper(SystemClock& clock, Log& log);

  void start() override { periodic_.start(); }
  void stop() override { periodic_.stop(); }

  /// Makes one step. The service's thread calls step(), and tests call step() instead of start().
  void step();

 private:
  void run() override { step(); }

  SystemClock& clock_;
  Log& log_;
  bool hasWarned_ = false;
  Periodic periodic_;
};

}  // namespace jobq

// Frees what has expired, ends what ran too long, and puts the jobs of dead workers back in line.
#pragma once

#include <atomic>
#include <functional>

#include "core/base/periodic.h"
#include "core/base/service.h"
#include "jobq/log.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class Sweeper final : public Service {
 public:
  using Listener = std::function<void(const SweepResult&)>;

  /// `listener` hears of every sweep that did something, on the sweeper's thread or the caller's of sweepAll().
  /// `first` and `last` are other duties of every second, before and after the sweep; each is done whatever becomes of
  /// the others.
  Sweeper(Storage& storage, Clock& clock, Log& log, Listener listener, std::function<void()> first = {},
          std::function<void()> last = {});

  void start() override { periodic_.start(); }

  /// A sweep that runs ends with its batch: the next start goes on with the rest.
  void stop() override;

  /// Sweeps in bounded batches until nothing is left, or stop() is called.
  void sweepAll();

  /// Sweeps until a sweep has ended no job: those past their execution timeout are TIMED_OUT, and those of a dead
  /// process, before the first claim, are back in line. What has expired is left to sweepAll(), be it a million jobs.
  /// Returns whether something is left.
  bool endOverdue();

 private:
  Storage& storage_;
  const Listener listener_;
  std::atomic<bool> stopping_ = false;
  Periodic periodic_;
};

}  // namespace jobq

// Frees expired jobs, ends overdue jobs, and returns the jobs of dead workers to the queue. Runs every second.
#pragma once

#include <atomic>
#include <functional>

#include "core/base/periodic.h"
#include "core/base/service.h"
#include "jobq/log.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread may call sweepAll() and endOverdue().
class Sweeper final : public Service {
 public:
  using Listener = std::function<void(const SweepResult&)>;

  /// `listener` receives the result of every sweep, on the sweeper's thread or on the thread calling sweepAll() or
  /// endOverdue(). `first` and `last` are further duties of every second, before and after the sweep. Each duty is
  /// performed whatever the result of the others; the first failure is logged. `storage`, `clock` and `log` outlive the
  /// sweeper.
  Sweeper(Storage& storage, Clock& clock, Log& log, Listener listener, std::function<void()> first = {},
          std::function<void()> last = {});

  void start() override { periodic_.start(); }

  /// Ends a running sweep after its batch; the next start of the server continues. Blocks until the thread has ended.
  void stop() override;

  /// Sweeps in bounded batches until the storage has no more work or stop() is called, at least one batch. Throws
  /// StorageError.
  void sweepAll();

  /// Sweeps until a sweep has ended no job. Afterwards jobs past their execution timeout are TIMED_OUT, and before the
  /// first claim the jobs of a dead process are in the queue again. Expired jobs, perhaps a million, are left to
  /// sweepAll(). Returns true if work is left. Throws StorageError.
  bool endOverdue();

 private:
  Storage& storage_;
  const Listener listener_;
  std::atomic<bool> stopping_ = false;
  Periodic periodic_;
};

}  // namespace jobq

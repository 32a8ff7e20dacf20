// Frees expired jobs, ends overdue jobs, and returns the jobs of dead workers to the queue. Runs every second.
#pragma once

#include <atomic>

#include "core/base/periodic.h"
#include "core/base/service.h"
#include "core/model/overdue_jobs.h"
#include "jobq/log.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Receives the results of sweeps and performs the further tasks of every second. Each task and each sweep is
/// performed whatever the result of the others; the first failure is logged.
class SweepListener {
 public:
  virtual ~SweepListener() = default;

  /// Tasks before the sweep. Called on the sweeper's thread. May throw any std::exception.
  virtual void beforeSweep() = 0;

  /// Receives the result of a batch, on the sweeper's thread or on the thread calling sweepAll() or endOverdue(), also
  /// on several threads at once. An exception ends the sweep.
  virtual void swept(const SweepResult& result) = 0;

  /// Called before a batch if the lists of the batch before it are lost, on the thread that sweeps then: any job may
  /// have ended, or may be in the queue. Called again before the next batch if it throws.
  virtual void sweepUnanswered() = 0;

  /// Tasks after the sweep. Called on the sweeper's thread. May throw any std::exception.
  virtual void afterSweep() = 0;
};

/// Any thread may call sweepAll() and endOverdue().
class Sweeper final : public Service, public OverdueJobs, private PeriodicTask {
 public:
  /// The referenced objects outlive the sweeper.
  Sweeper(Storage& storage, Clock& clock, Log& log);

  /// Sets the listener. The listener stops workers, whose timeouts need the sweeper, so it is constructed later and set
  /// afterwards: before start() and the first sweep. `listener` is valid until the last sweep.
  void setListener(SweepListener& listener) { listener_ = &listener; }

  void start() override { periodic_.start(); }

  /// Ends a running sweep after its batch; the next start of the server continues. Blocks until the thread has ended.
  void stop() override;

  /// Sweeps in bounded batches until the storage has no more work or stop() is called, at least one batch. Throws
  /// StorageError.
  void sweepAll();

  /// Sweeps until a sweep has ended no job. Afterwards jobs past their execution timeout are TIMED_OUT, and before the
  /// first claim the jobs of a dead process are in the queue again. Expired jobs, perhaps a million, are left to
  /// sweepAll(). Returns true if work is left. Throws StorageError.
  bool endOverdue() override;

 private:
  void run() override;
  SweepResult sweepBatch();
  void notifyUnanswered();
  SweepResult sweepAndNotify();

  Storage& storage_;
  SweepListener* listener_ = nullptr;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> isUnanswered_ = false;  // the lists of a batch are lost, at least in part
  Periodic periodic_;
};

}  // namespace jobq

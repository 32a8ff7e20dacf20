// The worker pools of a node under a mutex. WorkerPools has the decisions for all endpoints, and RemotePools
// (core/workers/remote/remote_pools.h) the places of remote workers.
#pragma once

#include "core/workers/pool/pool_table.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

class QueueSignal;

/// Any thread.
class LockedPools {
 public:
  /// All members outlive the pools.
  struct Deps {
    QueueSignal& queueSignal;
    Clock& clock;
    Log& log;
  };
  explicit LockedPools(const Deps& deps) : deps_(deps) {}
  LockedPools(const LockedPools&) = delete;
  LockedPools& operator=(const LockedPools&) = delete;

  /// Calls step(table, now) under the mutex, and returns the result. The step calls nothing beyond the table.
  template <class Step>
  auto change(const Step& step) {
    Lock lock(mutex_);
    return step(table_, deps_.clock.now());
  }
  /// Calls read(table) under the mutex, and returns the result.
  template <class Read>
  auto read(const Read& read) const {
    Lock lock(mutex_);
    return read(table_);
  }
  QueueSignal& queueSignal() const noexcept { return deps_.queueSignal; }

 protected:
  ~LockedPools() = default;

  const Deps deps_;
  mutable Mutex mutex_;
  PoolTable table_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq

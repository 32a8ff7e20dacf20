// The known remote workers of a node under a mutex, and the consequences of each change: places leave the pools, calls
// are resumed, and jobs go back to the queue. The calls of workers (RemoteWorkers), the connections
// (core/workers/remote/remote_connections.h), the launcher (core/workers/launched/remote_launches.h) and the news of
// other nodes (RemoteNewsAccess) change the same workers.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "core/workers/pool/worker_pools.h"
#include "core/workers/remote/remote_elsewhere.h"
#include "core/workers/remote/remote_lives.h"
#include "core/workers/remote/remote_pools.h"
#include "core/workers/remote/remote_returns.h"
#include "core/workers/remote/remote_run.h"
#include "core/workers/remote/remote_table.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// The state of a RemoteRegistry, under the mutex.
struct RemoteState {
  RemoteTable table;
  RemoteElsewhere elsewhere;
  /// Number of the last place. The number begins with the time of the start, so no place of an earlier life has a later
  /// number.
  Millis::rep lastPlace;
  /// Runs that ended inside the stop callback of the run, until the callback has returned.
  std::vector<RemoteRunPtr> stopped{};
  bool isDraining = false;
  bool isClosed = false;
};

/// Any thread.
class RemoteRegistry {
 public:
  /// All members outlive the object.
  struct Deps {
    RemoteRun::Deps run;
    WorkerPools& pools;
    const std::atomic<bool>& draining;  ///< true: the server stops
    Log& log;
  };
  explicit RemoteRegistry(const Deps& deps);

  /// Calls step(state, now, changes) under the mutex, and carries the changes out afterwards, without the mutex.
  template <class Step>
  void change(const Step& step) {
    RemoteChanges changes;
    {
      Lock lock(mutex_);
      step(state_, deps_.run.clock.now(), changes);
    }
    carryOut(std::move(changes));
  }
  /// Calls read(state, now) under the mutex, and returns the result.
  template <class Read>
  auto read(const Read& read) const {
    Lock lock(mutex_);
    return read(state_, deps_.run.clock.now());
  }
  /// Waits until no worker of the selection has a job, until `end` at most.
  void awaitNoJobs(const RemoteSelection& workers, Instant end);

  bool isStopping() const noexcept { return deps_.draining; }
  RemotePools& pools() noexcept { return pools_; }
  const RemotePools& pools() const noexcept { return pools_; }
  RemoteLives& lives() noexcept { return lives_; }
  RemoteReturns& returns() noexcept { return returns_; }

 private:
  void carryOut(RemoteChanges changes);

  const Deps deps_;
  RemotePools pools_;
  RemoteReturns returns_;
  RemoteLives lives_;
  mutable Mutex mutex_;
  Condition jobsEnded_;
  RemoteState state_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq

// Keeps the leases of this node on a shared storage, and fences the node if the beats fail.
//
// Three times decide, all counted from the moment before the last successful beat was sent:
//  - every 1 s a beat moves the end of the node's life to leaseLife() from then, on the clock of the storage;
//  - after leaseLife() - 5 s without a successful beat the keeper fences the node, on the node's clock: the node stops
//    the handlers, claims nothing and answers 503 to /readyz. Other nodes may take the jobs back from leaseLife() on,
//    so 5 s remain for the handlers to end;
//  - after the fence the next successful beat decides, if the answer comes within leaseLife() - 5 s. If the life goes
//    on, no other node has taken a job back: the job of each stopped handler returns to the queue uncounted when the
//    handler has ended. If the life has ended, the node begins another. If another server has joined under the same
//    name, the node stays fenced until a restart, because two servers of the same name would end each other for ever.
// A handler that returned before the fence still reports: the attempt in the report fences stale reports.
//
// The keeper also counts the living nodes, at each join and every 3 s, because each node has a part of workersMax and
// of the rate limits (`core/workers/node/node_share.h`).
//
// On a storage for a single process (no leaseLife()) the keeper does nothing.
#pragma once

#include <optional>

#include "core/base/periodic.h"
#include "core/base/service.h"
#include "core/workers/node/node_life.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/pool/worker_supervisor.h"
#include "core/workers/run/running_jobs.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class QueueSignal;

/// Owner of the threads `lease-beats`, `lease-fence` and `lease-runs`. A beat may hang in a storage that does not
/// answer, so a second thread watches the time.
class LeaseKeeper final : public Service {
 public:
  /// All members outlive the keeper.
  struct Deps {
    NodeLife& node;
    Storage& storage;
    WorkerPools& pools;
    WorkerSupervisor& supervisor;
    RunningJobs& running;
    QueueSignal& queueSignal;
    Clock& clock;
    Log& log;
  };
  explicit LeaseKeeper(const Deps& deps);
  ~LeaseKeeper() override { stop(); }

  /// Begins the first life of the node. Called before the first claim. Throws StorageError.
  void join();

  /// Starts the threads, directly after join().
  void start() override;

  /// Ends the threads. The leases last until the life ends by time or by leave().
  void stop() override;

  /// Returns the jobs of stopped handlers to the queue and ends the life, so that other nodes take over at once. Does
  /// nothing before a join, or on a storage for a single process. Called after stop(). Throws StorageError. The life is
  /// also ended if the jobs cannot be returned; the jobs then count as lost.
  void leave();

  /// Beats once and acts on the answer. Throws StorageError. Called by one thread at a time; simulations drive the
  /// keeper by beat(), checkFence() and followRuns() instead of start().
  void beat();

  /// Fences the node if the last successful beat is too old.
  void checkFence();

  /// Stops runs that have ended in the storage, and counts the nodes when it is time. Wakes the dispatcher, because a
  /// worker of another node may have left. Throws StorageError.
  void followRuns();

 private:
  /// A periodic call of a function of the keeper.
  struct Task final : PeriodicTask {
    Task(LeaseKeeper& owner, void (LeaseKeeper::*called)()) : keeper(owner), function(called) {}
    void run() override { (keeper.*function)(); }
    LeaseKeeper& keeper;
    void (LeaseKeeper::*const function)();
  };

  enum class When { now, ifOverdue };
  void fence(When when, const char* reason);
  void noteBeat(Instant asked);
  /// Returns true if the last successful beat is so old that the node must be fenced.
  bool isOverdue() const JOBQ_REQUIRES(mutex_);
  void releaseFenced();
  void beginLife(Instant asked);
  void countNodes();

  const Deps deps_;
  const std::optional<Millis> leaseLife_;
  Mutex mutex_;
  Instant lastBeat_ JOBQ_GUARDED_BY(mutex_){};  // moment before the last successful beat or join was sent
  // Used by the thread of the beats.
  bool isReplaced_ = false;
  bool isJoining_ = false;  // the life has ended, and no join has been answered since
  Instant shareDueAt_{};    // used by the thread of the runs
  Task beatTask_{*this, &LeaseKeeper::beat};
  Task fenceTask_{*this, &LeaseKeeper::checkFence};
  Task runsTask_{*this, &LeaseKeeper::followRuns};
  Periodic beats_;
  Periodic fences_;
  Periodic runs_;
};

}  // namespace jobq

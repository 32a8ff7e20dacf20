// The remote workers of this node: processes on any machine that take jobs, report results and are told to stop over
// HTTP (core/http/api/worker_calls.cpp). A call for jobs is parked without a thread, and is an idle worker of the
// endpoint's pool meanwhile, so the dispatcher claims for remote workers as it does for threads. The holder of the
// claims is this node.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/connection_owner.h"
#include "core/base/periodic.h"
#include "core/base/service.h"
#include "core/base/suspended_call.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/workers/remote_run.h"
#include "core/workers/remote_worker.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/node_store.h"
#include "jobq/time.h"

namespace jobq {

class QueueSignal;
class WorkerPools;

/// Any thread, except as noted. Continues suspended calls without its lock. Outlives the connections of the server.
class RemoteWorkers final : public Service, private PeriodicTask {
 public:
  /// Everything here outlives the object.
  struct Deps {
    RemoteRun::Deps run;
    WorkerPools& pools;
    QueueSignal& queueSignal;
    Log& log;
  };
  explicit RemoteWorkers(const Deps& deps);
  ~RemoteWorkers() override;

  /// Starts the thread that looks after the workers every second.
  void start() override { periodic_.start(); }
  /// Ends the thread, and all parked calls.
  void stop() override;

  /// Returns true if `worker` is the name of a place, and not of a thread.
  static bool isPlace(std::string_view worker) { return worker.find(':') != std::string_view::npos; }
  /// Gives the job to its worker. Returns the job to the queue if the worker has gone, or may still run an earlier
  /// attempt. Throws std::bad_alloc; the place is still ready then.
  void assign(ClaimedJob job);
  /// Removes a place that is idle no more (WorkerState::leaving).
  void removePlace(const WorkerId& place);

  /// Most jobs in an answer to a call for jobs.
  static constexpr std::size_t kMostAtOnce = 1'000;

  /// Parks a call for up to `most` jobs. `holdsJobs` tells whether the worker still has jobs: without any, the jobs
  /// that this server has handed out to it are lost. Returns null if there are too many workers.
  std::shared_ptr<RemoteTake> beginTake(const RemoteWorkerKey& key, std::size_t most, std::optional<bool> holdsJobs,
                                        SuspendedCall call);
  /// Returns the jobs for the worker, none at the end of the wait, or no value while the call waits. With `hasLeft` the
  /// wait is over, and its jobs return to the queue.
  std::optional<std::vector<RemoteRunPtr>> pollTake(const RemoteWorkerKey& key, RemoteTake& take, bool hasLeft);

  /// Parks a call for jobs to stop, and polls it: the ids of the jobs, none at the end of the wait.
  std::shared_ptr<RemoteStopWait> beginStopWait(const RemoteWorkerKey& key, SuspendedCall call);
  std::optional<std::vector<JobId>> pollStopWait(const RemoteWorkerKey& key, RemoteStopWait& wait, bool hasLeft);

  /// Notes a ping with the jobs that the worker has. With `isUnhealthy` the worker is about to end.
  void notePing(const RemoteWorkerKey& key, const std::vector<JobId>& jobs, bool isUnhealthy);

  /// Returns the run of a job that the worker has; null for a job that has ended, or was never handed out to it.
  RemoteRunPtr findRun(const RemoteWorkerKey& key, const JobId& job);
  /// Forgets the job, because the worker has sent its result, and the result is stored or does not count. With
  /// `isLeaving` the worker gets no further job, and its parked calls end.
  void noteResult(const RemoteWorkerKey& key, const JobId& job, bool isLeaving);

  /// Forgets the job, because the server has ended it, and tells the worker to stop it.
  void stopJob(const RemoteWorkerKey& key, const LeaseRef& lease);

  /// Returns the owner for a connection of the worker. As long as a connection has it, the worker is connected.
  std::shared_ptr<const ConnectionOwner> connect(const RemoteWorkerKey& key);
  /// Continues the call at `at`, within a second.
  void resumeAt(Instant at, SuspendedCall call);

  /// Returns the numbers of the endpoint's workers by state.
  WorkerCounts counts(const EndpointId& endpoint) const;
  /// Returns each worker of the endpoint, without its release.
  std::vector<WorkerView> view(const EndpointId& endpoint) const;

  /// Takes over the jobs that remote workers have since an earlier life of the server (LeaseStore::adopt), before the
  /// first call of a worker. Throws StorageError.
  void adopt(std::vector<ClaimedJob> jobs);

  /// Hands out no further job, and returns those to the queue that no worker has got. Gives jobs in hand the time
  /// `drainTime` to end, and returns the rest to the queue, too.
  void drain(Millis drainTime);
  /// Does the same for a storage that gives the jobs in hand to the next life of the server: they stay as they are.
  void leaveJobsInHand();

 private:
  class Connected;

  RemoteWorker* find(const RemoteWorkerKey& key) JOBQ_REQUIRES(mutex_);
  RemoteWorker* findOrAdd(const RemoteWorkerKey& key) JOBQ_REQUIRES(mutex_);
  void run() override;
  void carryOut(RemoteChanges changes);
  void storeLosses();
  void noteClosed(const RemoteWorkerKey& key);
  bool hasJobs(const RemoteWorkerKey& key) const;
  void removePlacesIfEnded(const RemoteWorkerKey& key, const RemoteTake& take, const std::vector<WorkerId>& places);
  void lose(const RemoteWorkerKey& key, RemoteRunPtr run, RemoteChanges& changes) JOBQ_REQUIRES(mutex_);
  void endTake(const RemoteWorkerKey& key, RemoteWorker& worker, RemoteTake& take, RemoteChanges& changes)
      JOBQ_REQUIRES(mutex_);
  std::vector<SuspendedCall> endWaits(const RemoteWorkerKey& key, RemoteWorker& worker, RemoteChanges& changes)
      JOBQ_REQUIRES(mutex_);
  void endHandingOut(RemoteChanges& changes) JOBQ_REQUIRES(mutex_);
  void lookAfter(const RemoteWorkerKey& key, RemoteWorker& worker, Instant now, RemoteChanges& changes)
      JOBQ_REQUIRES(mutex_);

  const Deps deps_;
  Clock& clock_;
  const Instant begun_;
  mutable Mutex mutex_;
  Condition jobsEnded_;
  std::map<RemoteWorkerKey, RemoteWorker> workers_ JOBQ_GUARDED_BY(mutex_);
  std::multimap<Instant, SuspendedCall> timed_ JOBQ_GUARDED_BY(mutex_);
  std::vector<std::pair<EndpointId, LeaseRef>> lost_ JOBQ_GUARDED_BY(mutex_);      // losses that are not stored yet
  std::vector<std::pair<EndpointId, LeaseRef>> unharmed_ JOBQ_GUARDED_BY(mutex_);  // to be returned to the queue
  // Runs that ended inside their own stop callback, until the callback has returned.
  std::vector<RemoteRunPtr> stopped_ JOBQ_GUARDED_BY(mutex_);
  bool isDraining_ JOBQ_GUARDED_BY(mutex_) = false;
  bool isClosed_ JOBQ_GUARDED_BY(mutex_) = false;
  Periodic periodic_;
};

}  // namespace jobq

// The remote workers of the node: processes on any machine that take jobs, report results and receive stops over HTTP
// (core/http/api/worker/worker_calls.cpp). A call for jobs is parked without a thread, and is an idle worker of the
// endpoint's pool meanwhile, so the dispatcher claims for remote workers as for threads. The holder of the claims is
// the node.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/connection_owner.h"
#include "core/base/periodic.h"
#include "core/base/service.h"
#include "core/base/suspended_call.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/jobs/output_room.h"
#include "core/workers/remote/remote_offers.h"
#include "core/workers/remote/remote_registry.h"
#include "core/workers/remote/remote_run.h"
#include "core/workers/remote/remote_table.h"
#include "core/workers/remote/remote_worker.h"
#include "core/workers/run/attempt_reports.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread, except as noted. Continues suspended calls without holding the lock. Outlives the connections of the
/// server.
class RemoteWorkers final : public Service, public RunEndListener, private PeriodicTask {
 public:
  using Deps = RemoteRegistry::Deps;
  explicit RemoteWorkers(const Deps& deps);
  ~RemoteWorkers() override { stop(); }

  /// Starts the thread that checks the workers every second.
  void start() override { periodic_.start(); }
  /// Ends the thread, and all parked calls.
  void stop() override;

  /// Looks at each worker. Called by the thread every second, and by tests.
  void run() override;

  /// Gives the job to the worker. Returns the call with the job. The caller resumes the call after the last job of the
  /// claim, so that the answer has all jobs. Returns no value if the job waits for the next call, or goes back to the
  /// queue because the worker has gone or may still run an earlier attempt. On a shared storage asks the storage for a
  /// job that has run before. Throws std::bad_alloc; the place is still ready then.
  std::optional<SuspendedCall> assign(ClaimedJob job);
  /// Removes a place that the pool has told to leave.
  void removePlace(const WorkerId& place);

  /// Most jobs in an answer to a call for jobs.
  static constexpr std::size_t kMostAtOnce = 1'000;

  /// Places of a node that parked calls share: among many workers a call gets fewer places than requested, but at least
  /// one.
  static constexpr std::size_t kSharedPlaces = 2'000;

  /// Parks a call for up to `most` jobs. `holdsJobs` is false if the worker has no jobs: the jobs handed out earlier
  /// are lost then. The optional is empty if the jobs of the worker are unknown. Returns null if there are too many
  /// workers.
  std::shared_ptr<RemoteTake> beginTake(const RemoteWorkerKey& key, std::size_t most, std::optional<bool> holdsJobs,
                                        SuspendedCall call);
  /// Returns the jobs for the worker, none at the end of the wait, or no value while the call waits. With `hasLeft` the
  /// wait is over, and the jobs return to the queue. Jobs handed out by an earlier poll return, too: the caller could
  /// not make the answer. Without room for the jobs in an answer the call waits, too; a null `room` always has room.
  std::optional<std::vector<RemoteRunPtr>> pollTake(const RemoteWorkerKey& key, RemoteTake& take, bool hasLeft,
                                                    OutputRoom* room = nullptr);

  /// Parks a call for jobs to stop, and polls the call: the ids of the jobs, none at the end of the wait.
  std::shared_ptr<RemoteStopWait> beginStopWait(const RemoteWorkerKey& key, SuspendedCall call);
  std::optional<std::vector<JobId>> pollStopWait(const RemoteWorkerKey& key, RemoteStopWait& wait, bool hasLeft);

  /// Notes a ping with the worker's jobs. With `isUnhealthy` the worker is about to end, for the `reason`.
  void notePing(const RemoteWorkerKey& key, const std::vector<JobId>& jobs, bool isUnhealthy, std::string reason = {});

  /// Returns the runs of jobs, in the order of `jobs`; null for a job that has ended, or was never handed out to the
  /// worker.
  std::vector<RemoteRunPtr> findRuns(const RemoteWorkerKey& key, std::span<const JobId> jobs);
  /// A job for which the worker has sent the result of `run`. The result is stored or does not count. A null `run` is a
  /// job that has ended before. The run may belong to another node (core/workers/remote/foreign_reports.h).
  struct Reported {
    JobId job;
    AttemptReportsPtr run;
    bool isLost = false;  ///< the worker has lost the job instead, and may get the job again
  };
  /// Forgets the jobs. Returns the lost jobs to the queue, at once or as soon as the storage works. With `isLeaving`
  /// the worker gets no further job, and the parked calls of the worker end.
  void noteResults(const RemoteWorkerKey& key, std::span<const Reported> jobs, bool isLeaving);
  /// Forgets the run of a job that has ended otherwise, and tells the worker to stop.
  void runMustEnd(const RemoteRun& run) override;

  /// Returns the owner for a connection over which the worker makes the call; null for an unknown worker. The worker is
  /// connected as long as a connection has the owner.
  std::shared_ptr<const ConnectionOwner> connect(const RemoteWorkerKey& key, WorkerCall call);

  /// Returns each worker of the endpoint, without the release: starting, idle, running, leaving or unhealthy.
  std::vector<WorkerView> view(const EndpointId& endpoint) const;

  /// Returns true if the jobs of the endpoint are for remote workers.
  bool isServed(const EndpointId& endpoint) const { return registry_.pools().releaseOf(endpoint) != nullptr; }
  /// Returns true if the endpoint has had a worker since the start of the server.
  bool hasServed(const EndpointId& endpoint) const;

  /// Takes over the jobs that remote workers have since an earlier life of the server (LeaseStore::adopt), before the
  /// first call of a worker. Throws StorageError.
  void adopt(std::vector<ClaimedJob> jobs);

  /// Hands out no further job, and returns the jobs that no worker has got to the queue. Gives the jobs in the hands of
  /// `ending` the time `drainTime` to end, and returns the rest to the queue, too. All other workers keep their jobs.
  void drain(Millis drainTime, const RemoteSelection& ending);

  /// Returns the workers with the mutex.
  RemoteRegistry& registry() noexcept { return registry_; }

 private:
  const RemoteRun::Deps runs_;
  const Instant begun_;
  RemoteRegistry registry_;
  RemoteOffers offers_;
  Periodic periodic_;
};

}  // namespace jobq

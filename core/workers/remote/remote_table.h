// The remote workers of a node as plain state: the known workers, the jobs of each worker, and the meaning of a silence
// (core/decisions/remote_workers.md). Has no lock and calls no other object: RemoteRegistry guards the table and
// carries out the changes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/connection_owner.h"
#include "core/base/suspended_call.h"
#include "core/workers/pool/endpoint_shares.h"
#include "core/workers/remote/remote_roster.h"
#include "core/workers/remote/remote_run.h"
#include "core/workers/remote/remote_worker.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"

namespace jobq {

/// The consequences of a change of the table. RemoteRegistry carries the changes out after the release of the lock.
struct RemoteChanges {
  std::vector<SuspendedCall> calls;                          ///< to be resumed
  std::vector<std::pair<EndpointId, WorkerId>> idlePlaces;   ///< to be removed unless claimed
  std::vector<std::pair<EndpointId, WorkerId>> endedPlaces;  ///< to be removed in any state
  std::vector<LeaseRef> lost;                                ///< jobs whose worker was lost
  std::vector<LeaseRef> unharmed;                            ///< jobs to be returned to the queue
  std::vector<RemoteWorkerKey> rivals;                       ///< ids of two processes each, to be logged
  std::vector<RemoteRunPtr> ended;                           ///< runs to be destroyed
  std::vector<RemoteRunPtr> stopped;  ///< runs to be destroyed later: the callback of the run is still running
};

/// Some of the workers; without a value, all workers.
using RemoteSelection = std::optional<std::set<RemoteWorkerKey>>;

/// Not thread-safe.
class RemoteTable {
 public:
  /// With `isShared` other nodes hand out jobs to the same workers (core/workers/remote/remote_elsewhere.h).
  explicit RemoteTable(bool isShared) : isShared_(isShared) {}

  RemoteWorker* find(const RemoteWorkerKey& key) { return roster_.find(key); }
  /// Returns the worker, seen `now`; null if there is no place for the worker (RemoteRoster).
  RemoteWorker* findOrAdd(const RemoteWorkerKey& key, Instant now);

  /// Parks a call for jobs in place of an earlier call of the worker. Without jobs in hand (`holdsJobs` false) the
  /// worker has lost the jobs that were handed out.
  void beginTake(const RemoteWorkerKey& key, RemoteWorker& worker, const std::shared_ptr<RemoteTake>& take,
                 std::optional<bool> holdsJobs, Instant now, RemoteChanges& changes);
  /// Ends a parked call. The jobs of the call wait for the next call of the worker.
  static void endTake(const RemoteWorkerKey& key, RemoteWorker& worker, RemoteTake& take, Instant now,
                      RemoteChanges& changes);
  /// Ends the parked calls of the worker.
  static void endCalls(const RemoteWorkerKey& key, RemoteWorker& worker, Instant now, RemoteChanges& changes);
  /// Ends all parked calls.
  void endAllCalls(Instant now, RemoteChanges& changes);

  /// Takes in the content of a ping.
  void notePing(const RemoteWorkerKey& key, RemoteWorker& worker, const std::vector<JobId>& jobs, Instant now,
                RemoteChanges& changes);
  /// Removes the run from the table. Has the worker stop the run if the worker has the job.
  void stopRun(const RemoteWorkerKey& key, const LeaseRef& lease, Instant now, RemoteChanges& changes);
  /// Removes the place from the parked call with the place.
  void removePlace(const WorkerId& place, Instant now, RemoteChanges& changes);
  /// Notes that a connection of the worker has ended.
  void noteClosed(const RemoteWorkerKey& key, ConnectionEnd end, Instant now);

  /// Acts on the time: ends waits, repeats stops, and finds lost and forgotten workers. While the server stops, or has
  /// no news of connections to other nodes (`isStopping`), a worker without a connection has lost no job.
  void noteTime(Instant now, bool isStopping, RemoteChanges& changes);

  /// Ends all places, and returns the jobs that no worker has got.
  void endPlaces(RemoteChanges& changes);
  /// Returns true if a worker of the selection has a job.
  bool hasJobs(const RemoteSelection& workers) const;
  /// Returns all jobs in the hands of the workers. On a shared storage a different node may run the jobs at once, so
  /// the workers have to stop the jobs.
  void returnJobs(const RemoteSelection& workers, Instant now, RemoteChanges& changes);

  /// Returns true if the endpoint has had a worker.
  bool hasServed(const EndpointId& endpoint) const { return roster_.hasServed(endpoint); }
  /// Returns all known workers.
  const RemoteRoster::Workers& all() const noexcept { return roster_.all(); }

  /// Acts on the time for a single worker, as noteTime().
  static void checkWorker(const RemoteWorkerKey& key, RemoteWorker& worker, Instant now, bool isStopping,
                          RemoteChanges& changes);

 private:
  static void loseJob(const RemoteWorkerKey& key, RemoteRunPtr run, RemoteChanges& changes);
  static void returnJob(const RemoteWorkerKey& key, RemoteRunPtr run, RemoteChanges& changes);
  static void endEmptyTake(const RemoteWorkerKey& key, RemoteWorker& worker, Instant now, RemoteChanges& changes);

  const bool isShared_;
  RemoteRoster roster_;
  // Stops of all workers at the last noteTime(), and of unknown jobs since: 100,000 places, the last 10,000 for
  // endpoints with less than 1,000.
  EndpointPlaces stops_{100'000, 10'000, 1'000};
};

/// Returns the jobs that the call has handed out. The answer with the jobs could not be made. `changes` is empty.
void returnHanded(const RemoteWorkerKey& key, RemoteWorker& worker, RemoteTake& take, RemoteChanges& changes);

}  // namespace jobq

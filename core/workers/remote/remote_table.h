// The remote workers of a node as plain state: who is there, which jobs each has, and what a silence means
// (core/decisions/remote_workers.md). Has no lock and calls nobody: RemoteWorkers guards the table and carries out the
// changes.
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

/// The consequences of a change of the table. RemoteWorkers carries them out when it has released its lock.
struct RemoteChanges {
  std::vector<SuspendedCall> calls;                          ///< to be resumed
  std::vector<std::pair<EndpointId, WorkerId>> idlePlaces;   ///< to be removed unless a claim has them
  std::vector<std::pair<EndpointId, WorkerId>> endedPlaces;  ///< to be removed in any state
  std::vector<LeaseRef> lost;                                ///< jobs whose worker was lost
  std::vector<std::pair<EndpointId, LeaseRef>> unharmed;     ///< jobs to be returned to the queue
  std::vector<RemoteWorkerKey> rivals;                       ///< ids of two processes each, to be logged
  std::vector<RemoteRunPtr> ended;                           ///< runs to be destroyed
  std::vector<RemoteRunPtr> stopped;                         ///< runs to be destroyed later: their callback still runs
};

/// Some of the workers; no value means all of them.
using RemoteSelection = std::optional<std::set<RemoteWorkerKey>>;

/// One thread at a time.
class RemoteTable {
 public:
  /// With `isShared` other nodes hand out jobs to the same workers (core/workers/remote/remote_elsewhere.h).
  explicit RemoteTable(bool isShared) : isShared_(isShared) {}

  RemoteWorker* find(const RemoteWorkerKey& key) { return roster_.find(key); }
  /// Returns the worker, seen `now`; null if there is no place for it (RemoteRoster).
  RemoteWorker* findOrAdd(const RemoteWorkerKey& key, Instant now);

  /// Parks a call for jobs in place of the worker's earlier one. Without jobs in hand (`holdsJobs` false) the worker
  /// has lost the jobs that were handed out to it.
  void beginTake(const RemoteWorkerKey& key, RemoteWorker& worker, const std::shared_ptr<RemoteTake>& take,
                 std::optional<bool> holdsJobs, Instant now, RemoteChanges& changes);
  /// Ends a parked call. Its jobs wait for the next call of the worker.
  static void endTake(const RemoteWorkerKey& key, RemoteWorker& worker, RemoteTake& take, Instant now,
                      RemoteChanges& changes);
  /// Ends the parked calls of the worker.
  static void endCalls(const RemoteWorkerKey& key, RemoteWorker& worker, Instant now, RemoteChanges& changes);
  /// Ends all parked calls.
  void endAllCalls(Instant now, RemoteChanges& changes);

  /// Takes in what a ping says.
  void notePing(const RemoteWorkerKey& key, RemoteWorker& worker, const std::vector<JobId>& jobs, Instant now,
                RemoteChanges& changes);
  /// Takes the run out, wherever it is, and has the worker stop it if the worker has it.
  void stopRun(const RemoteWorkerKey& key, const LeaseRef& lease, Instant now, RemoteChanges& changes);
  /// Takes the place out of the parked call that has it.
  void removePlace(const WorkerId& place, Instant now, RemoteChanges& changes);
  /// Notes that a connection of the worker has ended.
  void noteClosed(const RemoteWorkerKey& key, ConnectionEnd end, Instant now);

  /// Looks for what time has brought: the ends of waits, stops to be repeated, and lost or forgotten workers. While the
  /// server stops, or does not hear of connections to other nodes (`isStopping`), a worker without a connection has
  /// lost nothing.
  void noteTime(Instant now, bool isStopping, RemoteChanges& changes);

  /// Ends all places, and returns the jobs that no worker has got.
  void endPlaces(RemoteChanges& changes);
  /// Returns true if one of the workers has a job.
  bool hasJobs(const RemoteSelection& workers) const;
  /// Returns all jobs in the hands of the workers. On a shared storage another node may run them at once, so the
  /// workers have to stop them.
  void returnJobs(const RemoteSelection& workers, Instant now, RemoteChanges& changes);

  /// Returns true if the endpoint has had a worker.
  bool hasServed(const EndpointId& endpoint) const { return roster_.hasServed(endpoint); }
  /// Returns all known workers.
  const RemoteRoster::Workers& all() const noexcept { return roster_.all(); }

  /// Looks for what time has brought to one worker, as noteTime().
  static void checkWorker(const RemoteWorkerKey& key, RemoteWorker& worker, Instant now, bool isStopping,
                          RemoteChanges& changes);

 private:
  static void loseJob(const RemoteWorkerKey& key, RemoteRunPtr run, RemoteChanges& changes);
  static void returnJob(const RemoteWorkerKey& key, RemoteRunPtr run, RemoteChanges& changes);
  static void endEmptyTake(const RemoteWorkerKey& key, RemoteWorker& worker, Instant now, RemoteChanges& changes);

  const bool isShared_;
  RemoteRoster roster_;
  // Stops of all workers at the last noteTime(), and of unknown jobs since: 100,000 places, the last 10,000 of them for
  // endpoints with less than 1,000.
  EndpointPlaces stops_{100'000, 10'000, 1'000};
};

/// Returns the jobs that the call has handed out. The answer with the jobs could not be made. `changes` is empty.
void returnHanded(const RemoteWorkerKey& key, RemoteWorker& worker, RemoteTake& take, RemoteChanges& changes);

}  // namespace jobq

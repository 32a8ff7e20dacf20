#include "core/workers/remote/remote_registry.h"

#include <iterator>
#include <utility>

namespace jobq {

RemoteRegistry::RemoteRegistry(const Deps& deps)
    : deps_(deps),
      pools_(deps.pools),
      returns_(deps.run.reports, deps.log),
      lives_(deps.run.storage, deps.run.clock),
      state_{.table = RemoteTable(deps.run.storage.leaseLife().has_value()),
             .elsewhere = RemoteElsewhere(deps.run.storage.leaseLife().has_value()),
             .lastPlace = deps.run.clock.now().time_since_epoch().count()} {}

void RemoteRegistry::carryOut(RemoteChanges changes) {
  if (!changes.stopped.empty()) {
    Lock lock(mutex_);
    std::ranges::move(changes.stopped, std::back_inserter(state_.stopped));
  }
  if (!changes.endedPlaces.empty()) pools_.removeWorkers(changes.endedPlaces);
  if (!changes.idlePlaces.empty()) pools_.removeIdleWorkers(changes.idlePlaces);
  if (!changes.ended.empty() || !changes.stopped.empty()) {
    Lock lock(mutex_);
    jobsEnded_.notifyAll();
  }
  changes.ended.clear();
  for (const SuspendedCall& call : changes.calls) call.resume();
  for (const RemoteWorkerKey& key : changes.rivals) {
    deps_.log.write(
        LogLevel::warning, "remote.sharedId",
        "two processes work as " + key.worker + " of the endpoint " + key.endpoint +
            ", and lose each other's jobs: give each process an id of its own, or leave RUNPOD_POD_ID out of "
            "the environment that they share");
  }
  if (changes.lost.empty() && changes.unharmed.empty()) return;
  returns_.add(changes.lost, changes.unharmed);
  returns_.store();
}

void RemoteRegistry::awaitNoJobs(const RemoteSelection& workers, Instant end) {
  Lock lock(mutex_);
  Clock& clock = deps_.run.clock;
  while (state_.table.hasJobs(workers) && clock.now() < end) clock.waitUntil(mutex_, jobsEnded_, end);
}

}  // namespace jobq

#include "core/workers/remote/remote_view.h"

#include <algorithm>
#include <string_view>

#include "core/workers/remote/remote_worker.h"

namespace jobq {
namespace {

void addJob(RemoteLoad& load, const RemoteRun& run) {
  ++load.jobs;
  load.isNormal = load.isNormal || !run.isLowPriority();
}

RemoteLoad loadOf(const RemoteWorker& worker, Instant now) {
  const bool isPresent = worker.link.isPresent(now) || !worker.jobs.empty();
  RemoteLoad load{worker.shown.hasCalled(), isPresent, isLeaving(worker.state.get()), worker.unhealthy.has_value()};
  load.hasNoConnection = worker.link.isClosedHere();
  for (const auto& [id, job] : worker.jobs) addJob(load, *job.run);
  for (const RemoteWorker::Owed& owed : worker.owed) addJob(load, *owed.run);
  if (worker.take) {
    for (const RemoteRunPtr& run : worker.take->jobs) addJob(load, *run);
  }
  load.lastJobAt = worker.lastJobAt;
  for (const auto& [job, stop] : worker.stops)
    load.stopIgnored = std::max(load.stopIgnored, stop.listedAt - stop.since);
  return load;
}

// Calls `each` for every worker of the endpoint.
template <class Each>
void forWorkers(const RemoteTable& table, const EndpointId& endpoint, const Each& each) {
  const auto& all = table.all();
  for (auto at = all.lower_bound({endpoint, {}}); at != all.end() && at->first.endpoint == endpoint; ++at) {
    each(at->first.worker, at->second);
  }
}

}  // namespace

std::vector<WorkerView> viewRemoteWorkers(const RemoteTable& table, const EndpointId& endpoint, Instant now) {
  std::vector<WorkerView> workers;
  forWorkers(table, endpoint, [&](const WorkerId& id, const RemoteWorker& worker) {
    const bool mayTakeJobs = worker.link.isPresent(now) && !worker.link.isClosedHere();
    if (!mayTakeJobs && worker.jobs.empty() && !worker.unhealthy) return;
    const std::string_view state = worker.unhealthy                                   ? "unhealthy"
                                   : !worker.jobs.empty()                             ? "running"
                                   : !worker.shown.hasCalled()                        ? "starting"
                                   : worker.state.get() != RemoteWorkerState::serving ? "leaving"
                                                                                      : "idle";
    workers.push_back({id, state, worker.since, nullptr, worker.unhealthy.value_or("")});
  });
  return workers;
}

RemoteLoads loadsOfRemoteWorkers(const RemoteTable& table, const EndpointId& endpoint, Instant now) {
  RemoteLoads loads;
  forWorkers(table, endpoint,
             [&](const WorkerId& id, const RemoteWorker& worker) { loads.emplace(id, loadOf(worker, now)); });
  return loads;
}

}  // namespace jobq

#include "core/adapters.h"

#include <algorithm>
#include <map>

#include "core/auth/api_keys.h"
#include "core/auth/process_keys.h"
#include "core/base/periodic.h"
#include "core/endpoints/endpoint_service.h"
#include "core/endpoints/runtime_meter.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/run_reports.h"
#include "core/maintenance/outbox_cleaner.h"
#include "core/webhooks/dispatcher.h"
#include "core/workers/launched/launched_workers.h"
#include "core/workers/node/node_drains.h"
#include "core/workers/node/node_life.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/pool/worker_set.h"
#include "core/workers/pool/worker_supervisor.h"
#include "core/workers/remote/remote_pools.h"
#include "core/workers/remote/remote_workers.h"
#include "core/workers/thread_executor.h"

namespace jobq {
namespace {

WorkerCounts countsOf(const std::vector<WorkerView>& workers) {
  WorkerCounts counts;
  for (const WorkerView& worker : workers) {
    if (worker.state == "starting") ++counts.initializing;
    if (worker.state == "idle") ++counts.idle;
    if (worker.state == "running") ++counts.running;
    if (worker.state == "unhealthy" || worker.state == "stuck") ++counts.unhealthy;
  }
  counts.ready = counts.idle;
  return counts;
}

// Adds the launched workers without a request for jobs so far, and sets the releases of all launched workers.
void addLaunched(std::vector<WorkerView>& workers, const LaunchView& launches) {
  for (const auto& [id, launched] : launches.workers) {
    const auto known = std::ranges::find(workers, id, &WorkerView::id);
    if (known != workers.end()) {
      known->release = launched.release;
    } else {
      workers.push_back({id, launched.isRetired() ? "leaving" : "starting", launched.startedAt, launched.release});
    }
  }
}

// Removes the places of remote workers from the workers of a pool. Returns the remote workers, each with the release of
// a job.
std::map<WorkerId, ReleasePtr> removePlaces(std::vector<WorkerView>& workers) {
  std::map<WorkerId, ReleasePtr> holders;
  std::erase_if(workers, [&holders](const WorkerView& worker) {
    if (!worker.release->isRemote) return false;
    holders.insert_or_assign(WorkerId(workerOfPlace(worker.id)), worker.release);
    return true;
  });
  return holders;
}

bool hasOtherRelease(const LaunchView& launches, const ReleasePtr& release) {
  return std::ranges::any_of(launches.workers, [&](const auto& each) { return each.second.release != release; });
}

// Returns true if a worker of the release has asked for a job and stays.
bool serves(const std::vector<WorkerView>& workers, const ReleasePtr& release) {
  for (const WorkerView& worker : workers) {
    if (worker.release == release && worker.state != "starting" && worker.state != "leaving") return true;
  }
  return false;
}

// Changes the status of a draining node: the workers of the node take no job. Other nodes do the work, if there are
// any.
void countAsDrained(PoolStatus& status, bool isOnlyNode) {
  status.isDrained = isOnlyNode;
  status.counts.ready = 0;
  if (isOnlyNode) return;
  status.counts = {.running = status.counts.running, .unhealthy = status.counts.unhealthy};  // as counted elsewhere
}

}  // namespace

std::string LaunchKeys::keyFor(const EndpointId& endpoint) { return keys_.keyFor(endpoint); }

void LaunchKeys::forgetKey(const EndpointId& endpoint) { keys_.forgetKey(endpoint); }

WebhookBackoff EndpointKeys::webhookRetries(const EndpointId& endpoint) const {
  const EndpointPtr found = endpoints_.find(endpoint);
  return found ? found->webhookRetries() : others_;
}

std::string EndpointKeys::webhookKey(const EndpointId& endpoint) const {
  const EndpointPtr found = endpoints_.find(endpoint);
  return found ? found->webhookKey : std::string();
}

PoolStatus NodeWorkers::statusOfAllNodes(const EndpointId& endpoint) const {
  PoolStatus status = deps_.pools.status(endpoint);
  if (RemotePools(deps_.pools).releaseOf(endpoint)) {
    std::vector<WorkerView> workers = deps_.remote.view(endpoint);
    const LaunchView launches = deps_.launched.view(endpoint);
    addLaunched(workers, launches);
    status.counts = countsOf(workers);
    status.counts.throttled = launches.isThrottled ? 1 : 0;
    status.isLaunched = launches.isLaunched;
    status.launchFault = launches.fault;
    status.lacksGpu = launches.lacksGpu;
  }
  if (deps_.node.isDrained()) countAsDrained(status, deps_.node.share().nodes == 1);
  if (deps_.storage.leaseLife()) status.counts += deps_.storage.nodes().count(endpoint, deps_.node.name());
  return status;
}

WorkerCounts NodeWorkers::counts(const EndpointId& endpoint) const {
  WorkerCounts counts = statusOfAllNodes(endpoint).counts;
  counts += countsOf(RemotePools(deps_.pools).threadsOf(endpoint));
  return counts;
}

bool NodeWorkers::hasNoActiveWorkers(const EndpointId& endpoint) const {
  PoolStatus status;
  status.counts = counts(endpoint);
  return jobq::hasNoActiveWorkers(status);
}

std::uint32_t NodeWorkers::nodes() const { return deps_.node.share().nodes; }

WorkerPoolView NodeWorkers::view(const EndpointId& endpoint) const {
  WorkerPoolView view = deps_.pools.view(endpoint);
  const std::map<WorkerId, ReleasePtr> holders = removePlaces(view.workers);
  const ReleasePtr release = RemotePools(deps_.pools).releaseOf(endpoint);
  if (!release && holders.empty()) return view;
  for (WorkerView& worker : deps_.remote.view(endpoint)) {
    const auto holder = holders.find(worker.id);
    // The newest release has threads: the remaining remote workers end their jobs.
    if (!release && holder == holders.end()) continue;
    worker.release = release ? release : holder->second;
    view.workers.push_back(std::move(worker));
  }
  if (!release) return view;
  const LaunchView launches = deps_.launched.view(endpoint);
  addLaunched(view.workers, launches);
  view.rolling = view.rolling || hasOtherRelease(launches, release);
  if (view.halted) return view;  // the threads of the newest release do not start
  view.fault = launches.fault;
  view.halted = launches.fault && !serves(view.workers, release);
  return view;
}

std::string_view NodeWorkers::waitReason(const Endpoint& endpoint, bool lowPriority) const {
  return jobq::waitReason(statusOfAllNodes(endpoint.spec.id), endpoint, lowPriority);
}

std::optional<std::string> NodeWorkers::advice(const Endpoint& endpoint, AdviceReader reader) const {
  return workerAdvice(statusOfAllNodes(endpoint.spec.id), endpoint, deps_.remote.hasServed(endpoint.spec.id), reader);
}

void NodeWorkers::stopRun(const LeaseRef& lease) {
  deps_.supervisor.stopRun(lease);
  deps_.executor.wakeDrain();
}

void NodeWorkers::stopEndedRuns() {
  deps_.supervisor.stopEndedRuns();
  deps_.executor.wakeDrain();
}

std::uint64_t NodeWorkers::waiting(const EndpointId& endpoint) const {
  return deps_.storage.jobs().counts(endpoint).inQueue;
}

std::map<std::string, std::size_t> NodeWorkers::workersOfTemplates() const {
  std::map<std::string, std::size_t> workers;
  for (const PoolSummary& pool : deps_.pools.summaries()) {
    for (const auto& [id, count] : pool.workersOfTemplates) workers[id] += count;
  }
  return workers;
}

void EndpointLifecycle::endpointChanged(const EndpointId& id, const EndpointPtr& now) {
  if (now) {
    deps_.pools.setEndpoint(now);
  } else {
    deps_.pools.retire(id);
    deps_.completions.announceAllOf(id);
  }
}

std::vector<EndpointId> EndpointLifecycle::leaving() const { return deps_.registry.leaving(); }

bool EndpointLifecycle::isInUse(const EndpointId& endpoint) const { return deps_.registry.isInUse(endpoint); }

void EndpointLifecycle::forget(const EndpointId& endpoint) { deps_.service.forget(endpoint); }

bool EndpointLifecycle::hasNoActiveWorkers(const EndpointId& endpoint) const {
  return deps_.workers.hasNoActiveWorkers(endpoint);
}

void EndpointLifecycle::announceRemoved(const EndpointId& endpoint) { deps_.completions.announceAllOf(endpoint); }

void DrainOrders::beginDrain(const std::string& node) { drains_.begin(node); }

void DrainOrders::endDrain(const std::string& node) { drains_.end(node); }

bool DrainOrders::isDrained(const std::string& node) const { return node_.isDrained(node); }

void SweepTasks::beforeSweep() {
  deps_.webhooks.setNodes(deps_.workers.nodes());
  performAll([this] { deps_.endpoints.refresh(); }, [this] { deps_.drains.refresh(); });
}

void SweepTasks::swept(const SweepResult& result) {
  deps_.reports.announce(result);
  for (const LeaseRef& lease : result.stopped) deps_.workers.stopRun(lease);
}

void SweepTasks::sweepUnanswered() {
  deps_.reports.announceAll();
  deps_.workers.stopEndedRuns();
}

void SweepTasks::afterSweep() {
  performAll([this] { deps_.outboxCleaner.step(); }, [this] { deps_.remover.step(); },
             [this] { deps_.keys.storeUses(); }, [this] { deps_.runtimes.tick(deps_.workers.workersOfTemplates()); });
}

}  // namespace jobq

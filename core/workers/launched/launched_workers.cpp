#include "core/workers/launched/launched_workers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "core/jobs/queue_signal.h"
#include "core/model/worker_environment.h"
#include "core/workers/node/node_life.h"
#include "jobq/error.h"
#include "jobq/worker_output.h"

namespace jobq {
namespace {

constexpr Millis kLaunchInterval{250};
constexpr std::size_t kMostStarts = 16;  ///< of an endpoint in a step; the rest follows
/// Time for a worker without a job to end. A public worker waits for the answers of parked calls, which end each
/// second.
constexpr Millis kStopGrace{15'000};

}  // namespace

LaunchedWorkers::LaunchedWorkers(const Deps& deps, std::string prefix)
    : deps_(deps),
      prefix_(std::move(prefix)),
      pools_(deps.pools),
      remote_(deps.remote.registry()),
      gpus_(deps.gpus),
      periodic_("launches", deps.clock, deps.log, kLaunchInterval, *this) {}

void LaunchedWorkers::start() {
  if (deps_.launcher != nullptr) periodic_.start();
}

void LaunchedWorkers::run() {
  collectEvents();
  if (deps_.node.isFenced()) return;  // the storage does not answer: the workers wait, too
  const std::vector<RemotePool> pools = pools_.all();
  std::vector<EndpointId> left;
  {
    Lock lock(mutex_);
    for (const auto& [endpoint, launches] : launches_) {
      const bool isServed =
          std::ranges::any_of(pools, [&id = endpoint](const RemotePool& pool) { return pool.endpoint->spec.id == id; });
      if (!isServed) left.push_back(endpoint);
    }
  }
  for (const RemotePool& pool : pools) serveEndpoint(pool.endpoint->spec.id, &pool);
  for (const EndpointId& endpoint : left) serveEndpoint(endpoint, nullptr);
}

// The output comes after the exits, so the output of an ended worker is complete.
void LaunchedWorkers::collectEvents() {
  const std::vector<WorkerExit> exits = deps_.launcher->collectExits();
  for (const WorkerOutput& output : deps_.launcher->collectOutput()) {
    logs_.addOutput(output.worker, output.bytes, deps_.clock.now());
  }
  for (const WorkerExit& exit : exits) recordExit(exit);
  logs_.removeOldLogs(deps_.clock.now());
}

void LaunchedWorkers::recordExit(const WorkerExit& exit) {
  logs_.endWorker(exit.worker, exit.reason, deps_.clock.now());
  EndpointId endpoint;
  {
    Lock lock(mutex_);
    for (const auto& [id, launches] : launches_) {
      if (launches.all().contains(exit.worker)) endpoint = id;
    }
  }
  const RemoteLoads loads = remote_.loads(endpoint);
  bool isFailure = false;
  {
    Lock lock(mutex_);
    const auto launches = launches_.find(endpoint);
    if (launches == launches_.end()) return;
    gpus_.release(exit.worker);
    isFailure = launches->second.recordExit(exit, loads, deps_.clock.now());
  }
  remote_.noteExit({endpoint, exit.worker});
  deps_.log.write(isFailure ? LogLevel::error : LogLevel::information, isFailure ? "worker.failed" : "worker.ended",
                  "the launched worker " + exit.worker + " of " + endpoint + ": " + exit.reason);
}

LaunchSituation LaunchedWorkers::situationOf(const EndpointId& endpoint, const RemotePool* pool) const {
  LaunchSituation situation;
  auto part = std::make_shared<Endpoint>();
  if (pool != nullptr) {
    *part = *pool->endpoint;
    const NodeShare share = deps_.node.share();
    part->spec.workersMin = share.of(part->spec.workersMin, endpoint);
    part->spec.workersMax = share.of(part->spec.workersMax, endpoint);
    if (!deps_.node.isDrained() && !launchFault(*pool)) situation.release = pool->release;
    const std::uint32_t gpus = gpusOfWorker(part->spec);
    Lock lock(mutex_);
    if (gpus_.isCounted() && gpus > 0) situation.gpuRoom = gpus_.countFree() / gpus;
  }
  part->spec.id = endpoint;
  situation.endpoint = std::move(part);
  // The workers come before the count: a job handed out in between must not count as queued and as running.
  situation.loads = remote_.loads(endpoint);
  if (situation.release && deps_.queueSignal.isSet(endpoint)) situation.jobs = countJobs(endpoint);
  return situation;
}

// A failing storage counts as an empty queue: no worker starts. The failure is logged elsewhere.
EndpointCounts LaunchedWorkers::countJobs(const EndpointId& endpoint) const {
  try {
    return deps_.storage.jobs().counts(endpoint);
  } catch (const StorageError&) {
    return {};
  }
}

std::optional<std::string> LaunchedWorkers::launchFault(const RemotePool& pool) const {
  if (!pool.release) return std::nullopt;
  if (auto fault = gpuFault(*pool.endpoint)) return fault;
  return deps_.launcher->fault(pool.release->container);
}

std::optional<std::string> LaunchedWorkers::gpuFault(const Endpoint& endpoint) const {
  const std::size_t gpus = deps_.gpus.size();
  const std::uint32_t wanted = gpusOfWorker(endpoint.spec);
  if (gpus == 0 || wanted <= gpus) return std::nullopt;
  return "A worker of the endpoint needs " + std::to_string(wanted) + " GPUs (gpuCount), and launcher.gpus names " +
         std::to_string(gpus) + ": lower gpuCount, or name more GPUs.";
}

void LaunchedWorkers::serveEndpoint(const EndpointId& endpoint, const RemotePool* pool) {
  const LaunchSituation situation = situationOf(endpoint, pool);
  LaunchPool::Step step;
  bool isOver = false;
  {
    Lock lock(mutex_);
    step = launches_[endpoint].decide(situation, deps_.clock.now());
    isOver = pool == nullptr && launches_[endpoint].all().empty();
    if (isOver) launches_.erase(endpoint);
  }
  if (isOver) deps_.keys.forgetKey(endpoint);
  for (const std::string& sentence : step.givenUp) deps_.log.write(LogLevel::error, "worker.failed", sentence);
  for (const WorkerId& worker : step.retired) remote_.retireWorker({endpoint, worker});
  for (const WorkerId& worker : step.stopped) deps_.launcher->stop(worker, kStopGrace);
  for (const WorkerId& worker : step.killed) deps_.launcher->stop(worker, Millis(0));
  const std::size_t starts = std::min(step.starts, kMostStarts);
  for (std::size_t i = 0; i < starts; ++i) launchWorker(*situation.endpoint, situation.release);
}

void LaunchedWorkers::launchWorker(const Endpoint& endpoint, const ReleasePtr& release) {
  const EndpointId& id = endpoint.spec.id;
  const WorkerId worker = prefix_ + "-r" + std::to_string(++workersStarted_);
  WorkerLaunch launch{worker, id, release->container, release->env, gpusOfWorker(endpoint.spec)};
  const std::string url =
      serverUrl_ + "/v2/" + id;  // the variables come last: a template cannot send the keys of workers elsewhere
  for (auto& [name, value] : workerEnvironment(url, id, worker, deps_.keys.keyFor(id))) {
    launch.env[name] = std::move(value);
  }
  try {
    {
      Lock lock(mutex_);
      launch.env["JOBQ_SLOT"] = std::to_string(launches_[id].addWorker(worker, release, deps_.clock.now()));
      if (gpus_.isCounted()) launch.gpus = gpus_.reserve(worker, launch.gpuCount);
    }
    logs_.beginWorker(id, worker);
    deps_.launcher->start(std::move(launch));
  } catch (const std::bad_alloc& error) {
    recordExit({worker, true, error.what()});
  }
}

std::set<RemoteWorkerKey> LaunchedWorkers::keys() const {
  std::set<RemoteWorkerKey> keys;
  Lock lock(mutex_);
  for (const auto& [endpoint, launches] : launches_) {
    for (const auto& [worker, launched] : launches.all()) keys.insert({endpoint, worker});
  }
  return keys;
}

void LaunchedWorkers::endWorkers(Millis grace) {
  for (const RemoteWorkerKey& key : keys()) {
    remote_.retireWorker(key);
    deps_.launcher->stop(key.worker, grace);
  }
}

LaunchView LaunchedWorkers::view(const EndpointId& endpoint) const {
  LaunchView view;
  if (deps_.launcher == nullptr) return view;
  const std::optional<RemotePool> pool = pools_.find(endpoint);
  if (pool) view.fault = launchFault(*pool);
  view.isLaunched = pool && pool->release && !view.fault;
  view.lacksGpu = pool && gpuFault(*pool->endpoint);
  Lock lock(mutex_);
  const auto launches = launches_.find(endpoint);
  if (launches == launches_.end()) return view;
  view.isThrottled = launches->second.isThrottled(deps_.clock.now());
  view.lacksGpu = view.lacksGpu || launches->second.lacksGpu();
  view.workers = launches->second.all();
  if (view.isLaunched) view.fault = launches->second.fault();
  return view;
}

}  // namespace jobq

#include "core/workers/launched/launch_pool.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace jobq {
namespace {

constexpr Millis kFirstStartPause{1'000};
constexpr Millis kLongestStartPause{30'000};
constexpr Millis kStartLimit{600'000};  // the pull of an image takes minutes
constexpr Millis kProvenAfter{60'000};  // the backoff ends with a worker that lives longer

const RemoteLoad* find(const RemoteLoads& loads, const WorkerId& worker) {
  const auto found = loads.find(worker);
  return found == loads.end() ? nullptr : &found->second;
}

bool hasJobs(const RemoteLoads& loads, const WorkerId& worker) {
  const RemoteLoad* const load = find(loads, worker);
  return load != nullptr && load->jobs > 0;
}

// Returns true if the worker may still become busy, so that the pool has not replaced the worker yet.
bool isActive(const LaunchedWorker& worker) { return !worker.isRetired(); }

}  // namespace

LaunchPool::Step LaunchPool::decide(const LaunchSituation& situation, Instant now) {
  Step step;
  noteLoads(situation.loads, now);
  stopRetired(situation, step);
  retireUnfit(situation, now, step);
  lacksGpu_ = false;
  if (!situation.release) return step;
  if (isThrottled(now)) return step;  // no worker leaves either while the start of a replacement is not possible
  rollRelease(situation, step);
  if (step.starts == 0) step.starts = workersMissing(situation);
  lacksGpu_ = step.starts > situation.gpuRoom;
  step.starts = std::min(step.starts, situation.gpuRoom);
  if (step.starts == 0) retireIdle(situation, now, step);
  return step;
}

void LaunchPool::noteLoads(const RemoteLoads& loads, Instant now) {
  for (auto& [id, worker] : workers_) {
    const RemoteLoad* const load = find(loads, id);
    if (load == nullptr) continue;
    worker.hasConnected = worker.hasConnected || load->hasPolled;
    worker.hasWorked = worker.hasWorked || load->jobs > 0 || load->lastJobAt != Instant{};
    worker.busyUntil = load->jobs > 0 ? now : std::max(worker.busyUntil, load->lastJobAt);
    if (!worker.hasConnected || now < worker.startedAt + kProvenAfter) continue;
    backoff_ = Millis(0);
    fault_.reset();
  }
}

void LaunchPool::stopRetired(const LaunchSituation& situation, Step& step) {
  for (auto& [id, worker] : workers_) {
    const bool isStuck = worker.state.get() == LaunchedState::stuck;
    if (hasJobs(situation.loads, id) || !worker.state.apply(LaunchedEvent::stop)) continue;
    (isStuck ? step.killed : step.stopped).push_back(id);
  }
}

// A worker has to leave if no worker may run here, or if the worker asks to be replaced, ignores the stop of a job, has
// lost the connection, or does not connect in time.
void LaunchPool::retireUnfit(const LaunchSituation& situation, Instant now, Step& step) {
  for (auto& [id, worker] : workers_) {
    if (worker.isRetired()) continue;
    const RemoteLoad* const load = find(situation.loads, id);
    const bool asks = load != nullptr && (load->isLeaving || load->isUnhealthy);
    const bool isStuck = load != nullptr && load->stopIgnored > situation.endpoint->spec.stopGrace;
    const bool isCutOff = worker.hasConnected && (load == nullptr || !load->isConnected);
    const bool isMissing = !worker.hasConnected && now >= worker.startedAt + kStartLimit;
    if (situation.release && !asks && !isStuck && !isCutOff && !isMissing) continue;
    retire(id, step, isStuck ? LaunchedEvent::retireStuck : LaunchedEvent::retire);
    if (!isMissing) continue;
    step.givenUp.push_back("the worker " + id + " of " + situation.endpoint->spec.id + " has not asked for a job in " +
                           std::to_string(kStartLimit.count() / 60'000) + " minutes");
    noteFailure("it has not asked for a job in 10 minutes", now);
  }
}

// The workers of an old release leave one at a time. The first leaves after a worker of the new release has connected,
// or at once if no worker is needed or workersMax or the GPUs leave no slot for a new worker.
void LaunchPool::rollRelease(const LaunchSituation& situation, Step& step) {
  bool isPending = false;
  bool isProven = false;
  const std::pair<const WorkerId, LaunchedWorker>* oldest = nullptr;
  for (const auto& entry : workers_) {
    const LaunchedWorker& worker = entry.second;
    const bool isOld = worker.release != situation.release;
    isPending = isPending || worker.isRetired() || !worker.hasConnected;
    isProven = isProven || (!isOld && worker.hasConnected && isActive(worker));
    if (!isOld || worker.isRetired()) continue;
    if (oldest == nullptr || (hasJobs(situation.loads, oldest->first) && !hasJobs(situation.loads, entry.first))) {
      oldest = &entry;
    }
  }
  if (oldest == nullptr || isPending) return;
  const bool isNeeded =
      situation.jobs.inQueue > 0 || situation.endpoint->spec.workersMin > 0 ||
      std::ranges::any_of(workers_, [&](const auto& worker) { return hasJobs(situation.loads, worker.first); });
  const bool hasRoom = slots(situation) < situation.endpoint->spec.workersMax && situation.gpuRoom > 0;
  if (!isProven && isNeeded && hasRoom) {
    step.starts = 1;  // the new release is tried in a free slot before a worker has to leave
  } else {
    retire(oldest->first, step);
  }
}

void LaunchPool::retireIdle(const LaunchSituation& situation, Instant now, Step& step) {
  const EndpointSpec& spec = situation.endpoint->spec;
  std::size_t staying = slots(situation);
  for (const auto& [id, worker] : workers_) {
    const bool tooMany = staying > spec.workersMax;
    if (staying <= spec.workersMin && !tooMany) return;
    if (worker.isRetired() || hasJobs(situation.loads, id)) continue;
    const Instant since = std::max(worker.busyUntil, worker.startedAt);
    if (!tooMany && (!worker.hasConnected || since + spec.idleTimeout > now)) continue;
    if (!tooMany && situation.jobs.inQueue > 0 && !spec.paused) continue;
    retire(id, step);
    --staying;
  }
}

// Returns the number of workers that count for workersMax: launched workers that are not leaving, and workers started
// without the launcher.
std::size_t LaunchPool::slots(const LaunchSituation& situation) const {
  const auto active = std::ranges::count_if(workers_, [](const auto& entry) { return isActive(entry.second); });
  const auto others = std::ranges::count_if(situation.loads, [this](const auto& entry) {
    return entry.second.isConnected && !workers_.contains(entry.first);
  });
  return static_cast<std::size_t>(active + others);
}

std::size_t LaunchPool::workersMissing(const LaunchSituation& situation) const {
  const EndpointSpec& spec = situation.endpoint->spec;
  ScalerView view{spec.scaling, spec.workersMin, spec.workersMax, static_cast<std::uint32_t>(slots(situation))};
  for (const auto& [id, worker] : workers_) {
    if (isActive(worker) && find(situation.loads, id) == nullptr) ++view.coming;
  }
  for (const auto& [id, load] : situation.loads) {
    const auto launched = workers_.find(id);
    if (launched == workers_.end() ? !load.isConnected : launched->second.isRetired()) continue;
    if (load.jobs == 0 && load.hasNoConnection) continue;  // the worker can take no job, and may come back within 10 s
    if (load.jobs == 0) {
      ++view.coming;
    } else {
      ++(load.isNormal ? view.busy : view.busyLow);
    }
  }
  const EndpointCounts& jobs = situation.jobs;
  if (!spec.paused) view.waiting = jobs.inQueue - std::min(jobs.inQueueLow, jobs.inQueue);
  view.headWait = jobs.headWait;
  const std::uint32_t wanted = scale(view).workers;
  return wanted > view.workers ? wanted - view.workers : 0;
}

std::uint32_t LaunchPool::addWorker(const WorkerId& worker, const ReleasePtr& release, Instant now) {
  std::set<std::uint32_t> taken;
  for (const auto& [id, other] : workers_) taken.insert(other.slot);
  std::uint32_t slot = 0;
  while (taken.contains(slot)) ++slot;
  workers_[worker] = {.release = release, .startedAt = now, .busyUntil = now, .slot = slot};
  return slot;
}

void LaunchPool::retire(const WorkerId& worker, Step& step, LaunchedEvent event) {
  workers_.at(worker).state.apply(event);
  step.retired.push_back(worker);
}

bool LaunchPool::recordExit(const WorkerExit& exit, const RemoteLoads& loads, Instant now) {
  noteLoads(loads, now);
  const auto found = workers_.find(exit.worker);
  if (found == workers_.end()) return false;
  const LaunchedWorker worker = std::move(found->second);
  workers_.erase(found);
  const bool isFailure = !worker.isRetired() && (exit.isFailure || !worker.hasWorked);
  if (isFailure) {
    noteFailure(exit.reason, now);
  } else if (worker.hasWorked) {
    backoff_ = Millis(0);
    fault_.reset();
  }
  return isFailure;
}

void LaunchPool::noteFailure(std::string reason, Instant now) {
  backoff_ = std::clamp(backoff_ * 2, kFirstStartPause, kLongestStartPause);
  startAfter_ = now + backoff_;
  fault_ = std::move(reason);
}

}  // namespace jobq

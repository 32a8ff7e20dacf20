#include "core/workers/pool/worker_set.h"

#include <algorithm>
#include <utility>

namespace jobq {
namespace {

std::size_t indexOf(WorkerState state) { return static_cast<std::size_t>(state); }

// Adds or removes a worker of the release.
void countStaying(std::map<ReleasePtr, std::size_t>& staying, const ReleasePtr& release, bool isMore) {
  const auto count = staying.try_emplace(release).first;
  if (isMore) {
    ++count->second;
  } else if (--count->second == 0) {
    staying.erase(count);
  }
}

}  // namespace

// The only place where the state of a worker changes.
bool WorkerSet::apply(const WorkerId& worker, WorkerInfo& info, WorkerEvent event) {
  const std::optional<WorkerState> state = next(info.state, event);
  if (!state) {
    refusals_.push_back("worker " + worker + " is " + std::string(nameOf(info.state)) + " and ignores the event " +
                        std::string(nameOf(event)) + ": a fault of the server");
    return false;
  }
  // Before the change: without memory the worker keeps its state.
  if (stays(info.state) != stays(*state)) countStaying(staying_, info.release, stays(*state));
  --counts_[indexOf(info.state)];
  info.state = *state;
  ++counts_[indexOf(info.state)];
  return true;
}

void WorkerSet::add(const WorkerId& worker, WorkerInfo info) {
  info.state = WorkerState::starting;
  std::size_t& count = staying_[info.release];  // before the worker, because of the memory
  if (!workers_.emplace(worker, std::move(info)).second) return;
  ++counts_[indexOf(WorkerState::starting)];
  ++count;
}

void WorkerSet::erase(Workers::iterator worker) {
  --counts_[indexOf(worker->second.state)];
  if (stays(worker->second.state)) countStaying(staying_, worker->second.release, false);
  workers_.erase(worker);
}

std::optional<WorkerInfo> WorkerSet::remove(const WorkerId& worker) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return std::nullopt;
  std::optional<WorkerInfo> info = found->second;
  erase(found);
  return info;
}

bool WorkerSet::makeIdle(const WorkerId& worker, Instant now) {
  WorkerInfo& info = workers_.at(worker);
  if (!apply(worker, info, WorkerEvent::ready)) return false;
  info.since = now;
  info.lease = {};
  info.stuckFrom = Instant::max();
  info.replaces = false;
  return true;
}

std::vector<WorkerId> WorkerSet::reserve(std::size_t most) {
  most = std::min(most, count(WorkerState::idle));
  std::vector<WorkerId> reserved;
  reserved.reserve(most);
  for (auto& [worker, info] : workers_) {
    if (reserved.size() == most) break;
    if (info.state == WorkerState::idle) reserved.push_back(worker);
  }
  // After the allocations: no worker is reserved unknown to the caller.
  for (const WorkerId& worker : reserved) (void)apply(worker, workers_.find(worker)->second, WorkerEvent::reserve);
  return reserved;
}

void WorkerSet::assignJob(const ClaimedJob& job) {
  const auto found = workers_.find(job.worker);
  if (found == workers_.end()) {
    refusals_.push_back("worker " + job.worker + " does not exist and has a job: a fault of the server");
    return;
  }
  WorkerInfo& info = found->second;
  LeaseRef lease = job.lease;  // before the change: without memory the worker stays reserved
  if (!apply(job.worker, info, WorkerEvent::assign)) return;
  info.since = job.startedAt;
  info.lease = std::move(lease);
  info.lowPriority = job.policy.lowPriority;
}

void WorkerSet::releaseReserved(const std::vector<WorkerId>& workers) {
  for (const WorkerId& worker : workers) {
    const auto found = workers_.find(worker);
    if (found == workers_.end() || found->second.state != WorkerState::reserved) continue;
    if (found->second.isGone) {
      erase(found);
      continue;
    }
    (void)apply(worker, found->second, WorkerEvent::release);
  }
}

void WorkerSet::removeUnlessBusy(const WorkerId& worker) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  if (found->second.state == WorkerState::idle || found->second.state == WorkerState::leaving) {
    erase(found);
  } else if (found->second.state == WorkerState::reserved) {
    found->second.isGone = true;
  }
}

void WorkerSet::stopWorker(const WorkerId& worker) {
  (void)apply(worker, workers_.at(worker), WorkerEvent::stopWorker);
}

bool WorkerSet::beginStopGrace(const LeaseRef& lease, Instant end) {
  for (auto& [worker, info] : workers_) {
    if (info.state != WorkerState::busy || info.lease != lease || info.stuckFrom != Instant::max()) continue;
    info.stuckFrom = end;
    return true;
  }
  return false;
}

std::vector<StuckWorker> WorkerSet::markStuck(const EndpointId& endpoint, Instant now) {
  std::vector<StuckWorker> stuck;
  for (auto& [worker, info] : workers_) {
    if (info.state == WorkerState::busy && info.stuckFrom <= now) stuck.push_back({endpoint, worker, info.lease.job});
  }
  for (const StuckWorker& one : stuck)
    (void)apply(one.worker, workers_.find(one.worker)->second, WorkerEvent::stopGraceOver);
  return stuck;
}

bool WorkerSet::useSurge() {
  const auto surge = std::find_if(workers_.begin(), workers_.end(),
                                  [](const auto& entry) { return entry.second.surge && stays(entry.second.state); });
  if (surge == workers_.end()) return false;
  surge->second.surge = false;
  surge->second.replaces = surge->second.state == WorkerState::starting;
  return true;
}

void WorkerSet::clearSurge() {
  for (auto& [worker, info] : workers_) info.surge = false;
}

std::vector<std::string> WorkerSet::collectRefusals() { return std::exchange(refusals_, {}); }

}  // namespace jobq

#include "core/workers/worker_pool.h"

#include <algorithm>

namespace jobq {
namespace {

constexpr Millis kFirstBackoff{1'000};
constexpr Millis kLongestBackoff{30'000};

}  // namespace

std::string_view nameOf(WorkerState state) noexcept {
  switch (state) {
    case WorkerState::starting: return "starting";
    case WorkerState::idle:
    case WorkerState::reserved: return "idle";
    case WorkerState::busy: return "running";
    case WorkerState::stuck: return "stuck";
    case WorkerState::leaving: return "leaving";
  }
  return "";
}

std::size_t WorkerPool::count(WorkerState state) const {
  return static_cast<std::size_t>(
      std::count_if(workers.begin(), workers.end(), [state](const auto& m) { return m.second.state == state; }));
}

std::size_t WorkerPool::slots() const {
  const std::size_t replaced = std::min<std::size_t>(count(WorkerState::stuck), endpoint->maxStuck);
  return workers.size() - count(WorkerState::leaving) - replaced;
}

ReleasePtr WorkerPool::target() const {
  if (retiring) return nullptr;
  return halted ? proven : endpoint->release;
}

bool WorkerPool::isOutdated(const WorkerInfo& info) const {
  return info.state != WorkerState::leaving && info.state != WorkerState::stuck && info.release != target();
}

bool WorkerPool::isRolling() const {
  return vacancies > 0 ||
         std::any_of(workers.begin(), workers.end(), [this](const auto& m) { return isOutdated(m.second); });
}

void WorkerPool::change(const EndpointPtr& now) {
  const bool released = !endpoint || endpoint->release != now->release;
  if (released && endpoint && !isRolling()) {
    for (auto& [worker, info] : workers) info.surge = false;
  }
  endpoint = now;
  if (!released) return;
  halted = false;
  fault.clear();
  backoff = Millis(0);
  startAfter = {};
}

bool WorkerPool::takeReady(const WorkerId& worker, Instant now) {
  WorkerInfo& info = workers.at(worker);
  const bool leaves = info.drainAfterJob;
  if (info.state == WorkerState::starting) {
    proven = info.release;
    backoff = Millis(0);
    if (info.release == endpoint->release) fault.clear();
  }
  info.state = WorkerState::idle;
  info.since = now;
  info.lease = {};
  info.stuckFrom = Instant::max();
  info.replaces = false;
  // The slot of a worker that was stuck may be in use again, and workersMax may have been lowered.
  const bool tooMany = slots() > endpoint->workersMax;
  if (!leaves && !tooMany && target()) return true;
  info.state = WorkerState::leaving;
  if (leaves && target() && !takeSurge()) ++vacancies;
  return false;
}

void WorkerPool::takeGone(const WorkerId& worker, const std::string& failure, Instant now) {
  const auto found = workers.find(worker);
  if (found == workers.end()) return;
  const WorkerInfo info = found->second;
  workers.erase(found);
  if (failure.empty()) return;
  fault = failure;
  if (info.replaces) ++vacancies;
  if (info.release == endpoint->release && proven && proven != info.release) {
    halted = true;  // until the next release or a restart
    return;
  }
  backoff = std::clamp(backoff * 2, kFirstBackoff, kLongestBackoff);
  startAfter = now + backoff;
}

// Uses up a surge worker for a leaving worker. Returns false if the pool has none.
bool WorkerPool::takeSurge() {
  const auto surge = std::find_if(workers.begin(), workers.end(), [](const auto& entry) {
    return entry.second.surge && entry.second.state != WorkerState::leaving && entry.second.state != WorkerState::stuck;
  });
  if (surge == workers.end()) return false;
  surge->second.surge = false;
  surge->second.replaces = surge->second.state == WorkerState::starting;
  return true;
}

// Returns true if no replacement is pending, so the next worker may leave. Stuck workers do not count, because their
// handlers may never return.
bool WorkerPool::mayGoOn() const {
  return vacancies == 0 && std::none_of(workers.begin(), workers.end(), [](const auto& entry) {
           const WorkerInfo& info = entry.second;
           return info.state == WorkerState::starting || (info.drainAfterJob && info.state != WorkerState::stuck);
         });
}

WorkerPool::Step WorkerPool::nextStep() {
  Step step;
  const ReleasePtr next = target();
  if (!next) {
    for (auto& [id, info] : workers) {
      if (info.state == WorkerState::busy && retiring && info.stuckFrom == Instant::max()) {
        step.stopped.push_back(info.lease);
      }
      if (info.state != WorkerState::idle) continue;
      info.state = WorkerState::leaving;
      step.stoppedWorkers.push_back(id);
    }
    return step;
  }
  if (vacancies > 0) {
    --vacancies;
    step.startWorker = step.replaces = slots() < endpoint->workersMax;
    return step;
  }
  const auto old = [this](const auto& entry) { return isOutdated(entry.second); };
  if (!mayGoOn() || std::none_of(workers.begin(), workers.end(), old)) return step;
  if (proven != next && slots() < endpoint->workersMax) {
    step.startWorker = step.surge = true;  // the new release is tried in a free slot before a worker has to leave
    return step;
  }
  const auto idle = std::find_if(workers.begin(), workers.end(), [&old](const auto& entry) {
    return old(entry) && entry.second.state == WorkerState::idle;
  });
  if (idle != workers.end()) {
    idle->second.state = WorkerState::leaving;
    step.stoppedWorkers.push_back(idle->first);
    step.startWorker = step.replaces = !takeSurge() && slots() < endpoint->workersMax;
    return step;
  }
  const auto busy = std::find_if(workers.begin(), workers.end(), [&old](const auto& entry) {
    return old(entry) && entry.second.state == WorkerState::busy;
  });
  if (busy != workers.end()) busy->second.drainAfterJob = true;
  return step;
}

}  // namespace jobq

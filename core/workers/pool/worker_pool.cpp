#include "core/workers/pool/worker_pool.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

namespace jobq {
namespace {

constexpr Millis kFirstBackoff{1'000};
constexpr Millis kLongestBackoff{30'000};
constexpr Millis kRoomRecheck{1'000};

std::uint32_t narrow(std::size_t number) { return static_cast<std::uint32_t>(number); }

// Returns true if the workers of `release` have to leave for the release `target`. A remote worker stays through
// releases with remote workers: the owner of the worker replaces the worker.
bool isOutdated(const ReleasePtr& release, const ReleasePtr& target) {
  return release != target && !(release->isRemote && target && target->isRemote);
}

// Returns true if the worker is a replacement that is not ready yet, or a worker asked to leave. Stuck workers do not
// count, because their handlers may never return.
bool isPending(const WorkerInfo& info) {
  return info.state == WorkerState::starting || (info.drainAfterJob && info.state != WorkerState::stuck);
}

// Changes numbers in which each place of a remote worker counts: a remote worker with several places is one worker, and
// is unhealthy by its own word only, not for a job that it goes on with.
void countRemoteWorkersOnce(const WorkerSet& workers, WorkerCounts& counts) {
  std::map<std::string_view, bool> isRunning;
  for (const auto& [id, info] : workers.all()) {
    if (info.state == WorkerState::stuck && info.release->isRemote) --counts.unhealthy;
    if (!info.release->isRemote || !stays(info.state)) continue;
    const bool isBusy = info.state == WorkerState::busy;
    if (isBusy) --counts.running;
    if (info.state == WorkerState::idle || info.state == WorkerState::reserved) --counts.idle;
    bool& isOneBusy = isRunning[workerOfPlace(id)];
    isOneBusy = isOneBusy || isBusy;
  }
  for (const auto& [worker, isBusy] : isRunning) ++(isBusy ? counts.running : counts.idle);
}

// Stops all idle workers and, if `stopJobs`, all running jobs that have not been stopped yet.
WorkerPool::Step stopAll(WorkerSet& workers, bool stopJobs) {
  WorkerPool::Step step;
  for (const auto& [id, info] : workers.all()) {
    if (info.state == WorkerState::busy && stopJobs && info.stuckFrom == Instant::max()) {
      step.stopped.push_back(info.lease);
    }
    if (info.state == WorkerState::idle) step.stoppedWorkers.push_back(id);
  }
  for (const WorkerId& id : step.stoppedWorkers) workers.stopWorker(id);
  return step;
}

}  // namespace

void WorkerPool::change(const EndpointPtr& now) {
  const bool released = endpoint_->release != now->release;
  if (released && !isRolling()) workers_.clearSurge();
  endpoint_ = now;
  if (!released) return;
  halted_ = false;
  fault_.reset();
  backoff_ = Millis(0);
  startAfter_ = {};
}

std::size_t WorkerPool::slots() const {
  const std::size_t replaced = std::min<std::size_t>(workers_.count(WorkerState::stuck), endpoint_->maxStuck());
  return workers_.all().size() - workers_.count(WorkerState::leaving) - replaced;
}

ReleasePtr WorkerPool::target() const {
  if (retiring_) return nullptr;
  return halted_ ? proven_ : endpoint_->release;
}

bool WorkerPool::isRolling() const {
  if (vacancies_ > 0) return true;
  const ReleasePtr next = target();
  const auto& staying = workers_.staying();
  return std::any_of(staying.begin(), staying.end(),
                     [&next](const auto& each) { return each.second > 0 && isOutdated(each.first, next); });
}

ReleasePtr WorkerPool::addWorker(const WorkerId& worker, const Step& why, Instant now) {
  const ReleasePtr release = target();
  if (!release) return nullptr;
  WorkerInfo info{WorkerState::starting, now, now, release};
  info.replaces = why.replaces;
  info.surge = why.surge;
  workers_.add(worker, std::move(info));
  return release;
}

bool WorkerPool::recordReady(const WorkerId& worker, Instant now) {
  const WorkerInfo& info = workers_.all().at(worker);
  const bool started = info.state == WorkerState::starting;
  if (!workers_.makeIdle(worker, now)) return info.state != WorkerState::leaving;
  if (started) {
    proven_ = info.release;
    backoff_ = Millis(0);
    if (info.release == endpoint_->release) fault_.reset();
  }
  // The slot of a worker that was stuck may be in use again, and workersMax may have been lowered.
  if (!info.drainAfterJob && !hasTooManyWorkers(*this) && target()) return true;
  workers_.stopWorker(worker);
  if (info.drainAfterJob && target() && !isRemote(*this) && !workers_.useSurge()) ++vacancies_;
  return false;
}

bool WorkerPool::recordGone(const WorkerId& worker, const WorkerEnd& end, Instant now) {
  const auto info = workers_.remove(worker);
  if (!info || end) return false;
  fault_ = end.failure().reason;
  if (info->replaces) ++vacancies_;
  if (info->release == endpoint_->release && proven_ && proven_ != info->release) {
    return !std::exchange(halted_, true);  // until the next release or a restart
  }
  backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
  startAfter_ = now + backoff_;
  return false;
}

WorkerPool::Step WorkerPool::nextStep(Instant now) {
  const ReleasePtr next = target();
  if (!next) return stopAll(workers_, retiring_);
  Step step;
  if (next->isRemote) vacancies_ = 0;
  if (now < startAfter_) return step;  // no worker leaves either while its replacement could not start
  if (vacancies_ > 0) {
    --vacancies_;
    step.startWorker = step.replaces = slots() < endpoint_->spec.workersMax;
    return step;
  }
  const auto& all = workers_.all();
  const auto old = [&next](const auto& entry) {
    return stays(entry.second.state) && isOutdated(entry.second.release, next);
  };
  const auto pending = [](const auto& entry) { return isPending(entry.second); };
  if (std::any_of(all.begin(), all.end(), pending) || std::none_of(all.begin(), all.end(), old)) return step;
  if (!next->isRemote && proven_ != next && slots() < endpoint_->spec.workersMax) {
    step.startWorker = step.surge = true;  // the new release is tried in a free slot before a worker has to leave
    return step;
  }
  const auto oldIn = [&all, &old](WorkerState state) {
    return std::find_if(all.begin(), all.end(),
                        [&](const auto& entry) { return old(entry) && entry.second.state == state; });
  };
  const auto idle = oldIn(WorkerState::idle);
  if (idle != all.end()) {
    workers_.stopWorker(idle->first);
    step.stoppedWorkers.push_back(idle->first);
    step.startWorker = step.replaces = !next->isRemote && !workers_.useSurge() && slots() < endpoint_->spec.workersMax;
    return step;
  }
  const auto busy = oldIn(WorkerState::busy);
  if (busy != all.end()) workers_.drainAfterJob(busy->first);
  return step;
}

std::vector<WorkerId> WorkerPool::markIdleLeaving(Instant now, bool jobsWait) {
  std::vector<WorkerId> leaving;
  if (isRemote(*this) && endpoint_->spec.workersMax > 0) return leaving;
  std::size_t staying = slots();
  for (const auto& [worker, info] : workers_.all()) {
    const bool tooMany = staying > endpoint_->spec.workersMax;  // workersMax was lowered
    if (staying <= endpoint_->spec.workersMin && !tooMany) break;
    if (info.state != WorkerState::idle) continue;
    if (!tooMany && info.since + endpoint_->spec.idleTimeout > now) continue;
    if (!tooMany && jobsWait && !endpoint_->spec.paused) continue;
    leaving.push_back(worker);
    --staying;
  }
  for (const WorkerId& worker : leaving) workers_.stopWorker(worker);
  return leaving;
}

bool WorkerPool::beginScaling(Instant now) {
  scaleAt_ = Instant::max();
  return target() && !isRemote(*this) && slots() < endpoint_->spec.workersMax && now >= startAfter_;
}

ScalerView WorkerPool::scalerView() const {
  ScalerView view{endpoint_->spec.scaling, endpoint_->spec.workersMin, endpoint_->spec.workersMax, narrow(slots())};
  for (const auto& [worker, info] : workers_.all()) {
    if (info.state == WorkerState::busy) ++(info.lowPriority ? view.busyLow : view.busy);
  }
  view.coming = narrow(workers_.count(WorkerState::idle) + workers_.count(WorkerState::reserved) +
                       workers_.count(WorkerState::starting));
  return view;
}

std::size_t WorkerPool::workersMissing(ScalerView view, const EndpointCounts& jobs, std::size_t room, Instant now) {
  if (!endpoint_->spec.paused) view.waiting = jobs.inQueue - std::min(jobs.inQueueLow, jobs.inQueue);
  view.headWait = jobs.headWait;
  const ScalingDecision decision = scale(view);
  if (decision.recheckAfter) scaleAt_ = now + *decision.recheckAfter;
  const std::size_t missing = decision.workers > view.workers ? decision.workers - view.workers : 0;
  if (missing > room) scaleAt_ = now + kRoomRecheck;
  return std::min(missing, room);
}

Instant WorkerPool::nextTaskAt(Instant now) const {
  Instant next = scaleAt_;
  if (startAfter_ > now) next = std::min(next, startAfter_);
  for (const auto& [worker, info] : workers_.all()) {
    if (info.state == WorkerState::busy) next = std::min(next, info.stuckFrom);
  }
  if (isRemote(*this) || slots() <= endpoint_->spec.workersMin) return next;
  for (const auto& [worker, info] : workers_.all()) {
    if (info.state == WorkerState::idle) next = std::min(next, info.since + endpoint_->spec.idleTimeout);
  }
  return next;
}

PoolStatus WorkerPool::status(Instant now) const {
  PoolStatus status{true, {}};
  WorkerCounts& counts = status.counts;
  counts.idle = narrow(workers_.count(WorkerState::idle) + workers_.count(WorkerState::reserved));
  counts.initializing = narrow(workers_.count(WorkerState::starting));
  counts.running = narrow(workers_.count(WorkerState::busy));
  counts.unhealthy = narrow(workers_.count(WorkerState::stuck));
  counts.throttled = !isRemote(*this) && now < startAfter_ ? 1 : 0;
  if (hasWorkers(*this, true) || counts.unhealthy > 0) countRemoteWorkersOnce(workers_, counts);
  counts.ready = counts.idle;
  return status;
}

WorkerPoolView WorkerPool::view() const {
  WorkerPoolView view;
  for (const auto& [id, info] : workers_.all()) {
    view.workers.push_back({id, apiNameOf(info.state), info.startedAt, info.release});
  }
  view.rolling = isRolling();
  view.halted = halted_;
  view.fault = fault_;
  return view;
}

bool isRemote(const WorkerPool& pool) {
  const ReleasePtr release = pool.target();
  return release && release->isRemote;
}

bool hasWorkers(const WorkerPool& pool, bool areRemote) {
  return std::ranges::any_of(pool.workers().staying(), [areRemote](const auto& workers) {
    return workers.second > 0 && workers.first->isRemote == areRemote;
  });
}

bool hasTooManyWorkers(const WorkerPool& pool) {
  const std::uint32_t most = pool.endpoint()->spec.workersMax;
  return (most == 0 || !isRemote(pool)) && pool.slots() > most;
}

bool mayGoOn(const WorkerPool& pool, const WorkerId& worker) {
  const auto& all = pool.workers().all();
  const auto found = all.find(worker);
  if (found == all.end() || found->second.state != WorkerState::busy) return false;
  const ReleasePtr target = pool.target();
  if (found->second.drainAfterJob || !target || hasTooManyWorkers(pool)) return false;
  if (!isOutdated(found->second.release, target)) return true;
  // The next pass of the dispatcher would mark a worker such as this one.
  return std::any_of(all.begin(), all.end(), [](const auto& entry) { return isPending(entry.second); });
}

}  // namespace jobq

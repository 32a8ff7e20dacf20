#include "core/workers/worker_pools.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/jobs/queue_signal.h"

namespace jobq {
namespace {

// Most pools of summaries() under one lock of the mutex.
constexpr std::size_t kSummariesAtOnce = 256;

void logRefusals(Log& log, const std::vector<std::string>& refusals) {
  for (const std::string& refusal : refusals) log.write(LogLevel::error, "worker.state", refusal);
}

// Returns the definition with the part of this node in the numbers of workers.
EndpointPtr partOf(const EndpointPtr& whole, const NodeShare& share) {
  // Remote workers choose their node, so each node takes all that come.
  if (share.nodes == 1 || (whole->release && whole->release->isRemote)) return whole;
  auto part = std::make_shared<Endpoint>(*whole);
  part->spec.workersMin = share.of(whole->spec.workersMin, whole->spec.id);
  part->spec.workersMax = share.of(whole->spec.workersMax, whole->spec.id);
  return part;
}

// Returns the summary of a pool. The places of a remote worker follow each other, and count as a single worker.
PoolSummary summaryOf(const EndpointId& endpoint, const WorkerPool& pool, Instant now) {
  PoolSummary summary{endpoint, pool.status(now).counts, {}};
  std::string_view last;
  for (const auto& [id, info] : pool.workers().all()) {
    const std::string_view worker = workerOfPlace(id);
    if (worker == std::exchange(last, worker) || info.release->templateId.empty()) continue;
    ++summary.workersOfTemplates[info.release->templateId];
  }
  return summary;
}

// Returns the slots for a task of a pass.
std::vector<PoolSlot*> slotsFor(PoolTask task, PoolTable& table, const WorkerPools::Deps& deps) {
  for (const EndpointId& endpoint : deps.queueSignal.collectNews()) (void)table.change(endpoint);
  return table.beginVisits(task, deps.clock.now());
}

}  // namespace

WorkerPools::WorkerPools(const Deps& deps, const std::vector<EndpointPtr>& endpoints) : deps_(deps) {
  for (const EndpointPtr& endpoint : endpoints) setEndpoint(endpoint);
}

void WorkerPools::setEndpoint(const EndpointPtr& now) {
  {
    Lock lock(mutex_);
    if (PoolSlot* const slot = table_.change(now->spec.id)) {
      slot->pool.change(partOf(now, share_));
      slot->whole = now;
    } else if (now->release) {
      table_.add(now, partOf(now, share_));
    } else {
      return;  // no pool: its jobs wait for a release
    }
  }
  deps_.queueSignal.addEndpoint(now->spec.id);
  deps_.queueSignal.rearm(now->spec.id);
  deps_.queueSignal.wake();
}

void WorkerPools::setShare(const NodeShare& share) {
  {
    Lock lock(mutex_);
    if (share_ == share) return;
    share_ = share;
    for (const auto& [id, slot] : table_.all()) table_.change(id)->pool.change(partOf(slot.whole, share));
  }
  deps_.queueSignal.wake();
}

void WorkerPools::retire(const EndpointId& endpoint) {
  {
    Lock lock(mutex_);
    PoolSlot* const slot = table_.change(endpoint);
    if (slot == nullptr) return;
    slot->pool.retire();
  }
  deps_.queueSignal.wake();
}

PoolStatus WorkerPools::status(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  const PoolSlot* const slot = table_.find(endpoint);
  return slot == nullptr ? PoolStatus{} : slot->pool.status(deps_.clock.now());
}

WorkerPoolView WorkerPools::view(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  const PoolSlot* const slot = table_.find(endpoint);
  return slot == nullptr ? WorkerPoolView{} : slot->pool.view();
}

std::vector<PoolSummary> WorkerPools::summaries() const {
  std::vector<PoolSummary> summaries;
  bool isOver = false;
  while (!isOver) {
    // Callers and workers need the mutex between two pieces.
    Lock lock(mutex_);
    const Instant now = deps_.clock.now();
    const auto& all = table_.all();
    auto at = summaries.empty() ? all.begin() : all.upper_bound(summaries.back().endpoint);
    for (std::size_t i = 0; i < kSummariesAtOnce && at != all.end(); ++i, ++at) {
      summaries.push_back(summaryOf(at->first, at->second.pool, now));
    }
    isOver = at == all.end();
  }
  return summaries;
}

std::vector<ClaimWant> WorkerPools::reserveWorkers(const WorkersToReserve& which) {
  const auto [only, most, jobIsComing, finishing] = which;
  std::vector<ClaimWant> wants;
  Lock lock(mutex_);
  std::vector<PoolSlot*> slots;
  if (only == nullptr) {
    slots = slotsFor(PoolTask::claim, table_, deps_);
  } else if (PoolSlot* const slot = table_.find(*only)) {
    slots.push_back(slot);
  }
  for (PoolSlot* const slot : slots) {
    WorkerPool& pool = slot->pool;
    if (pool.endpoint()->spec.paused || pool.isRetiring()) continue;
    if (!jobIsComing && !deps_.queueSignal.isSet(slot->id())) continue;
    std::vector<WorkerId> workers;
    if (finishing == nullptr) {
      workers = pool.workers().reserve(most);
      if (!workers.empty()) table_.mark(*slot);
    } else if (mayGoOn(pool, *finishing)) {
      workers.push_back(*finishing);
    }
    if (!workers.empty()) wants.push_back({slot->id(), std::move(workers)});
  }
  return wants;
}

void WorkerPools::concludeReservations(const std::vector<ClaimWant>& wants, const std::vector<ClaimedJob>& jobs) {
  bool retired = false;
  std::vector<std::string> refusals;
  {
    Lock lock(mutex_);
    for (const ClaimedJob& job : jobs) {
      PoolSlot* const slot = table_.change(job.endpoint);
      if (slot == nullptr) continue;
      retired = retired || slot->pool.isRetiring();
      table_.assignJob(*slot, job);
    }
    for (const ClaimWant& want : wants) {
      PoolSlot* const slot = table_.change(want.endpoint);
      if (slot == nullptr) continue;
      WorkerSet& workers = slot->pool.workers();
      workers.releaseReserved(want.workers);
      std::ranges::move(workers.collectRefusals(), std::back_inserter(refusals));
    }
  }
  logRefusals(deps_.log, refusals);
  if (retired) deps_.queueSignal.wake();
}

WorkerPools::ReadyResult WorkerPools::recordReady(const EndpointId& endpoint, const WorkerId& worker,
                                                  const ClaimedJob* next) {
  const Instant now = deps_.clock.now();
  ReadyResult result;
  std::vector<std::string> refusals;
  {
    Lock lock(mutex_);
    PoolSlot* const slot = table_.change(endpoint);
    if (slot == nullptr) throw std::out_of_range("no pool of " + endpoint);
    WorkerPool& pool = slot->pool;
    if (next != nullptr && !mayGoOn(pool, worker)) return result;
    table_.endRun(*slot, worker);
    result.stays = pool.recordReady(worker, now);
    if (next != nullptr && result.stays) {
      pool.workers().reserveWorker(worker);
      table_.assignJob(*slot, *next);
    }
    result.rolling = pool.isRolling();
    if (!isRemote(pool) && pool.workers().all().size() > pool.endpoint()->spec.workersMin)
      result.idleUntil = now + pool.endpoint()->spec.idleTimeout;
    refusals = pool.workers().collectRefusals();
  }
  logRefusals(deps_.log, refusals);
  return result;
}

std::optional<bool> WorkerPools::recordGone(const EndpointId& endpoint, const WorkerId& worker, const WorkerEnd& end) {
  Lock lock(mutex_);
  PoolSlot* const slot = table_.change(endpoint);
  if (slot == nullptr) return std::nullopt;
  table_.endRun(*slot, worker);
  return slot->pool.recordGone(worker, end, deps_.clock.now());
}

std::optional<Instant> WorkerPools::beginStopGrace(const LeaseRef& lease) {
  Lock lock(mutex_);
  PoolSlot* const slot = table_.findRun(lease);
  if (slot == nullptr) return std::nullopt;
  const Instant end = deps_.clock.now() + slot->pool.endpoint()->spec.stopGrace;
  if (!slot->pool.workers().beginStopGrace(lease, end)) return std::nullopt;
  table_.mark(*slot);
  return end;
}

std::vector<StuckWorker> WorkerPools::markStuck() {
  const Instant now = deps_.clock.now();
  std::vector<StuckWorker> all;
  Lock lock(mutex_);
  for (PoolSlot* const slot : slotsFor(PoolTask::stuck, table_, deps_)) {
    for (StuckWorker& stuck : slot->pool.workers().markStuck(now)) {
      table_.mark(*slot);
      stuck.endpoint = slot->id();
      all.push_back(std::move(stuck));
    }
  }
  return all;
}

std::vector<WorkerId> WorkerPools::markIdleLeaving() {
  const Instant now = deps_.clock.now();
  std::vector<WorkerId> leaving;
  Lock lock(mutex_);
  for (PoolSlot* const slot : slotsFor(PoolTask::idle, table_, deps_)) {
    WorkerPool& pool = slot->pool;
    if (isRemote(pool) && pool.endpoint()->spec.workersMax > 0) continue;
    if (pool.slots() <= std::min(pool.endpoint()->spec.workersMin, pool.endpoint()->spec.workersMax)) continue;
    const bool jobsWait = deps_.queueSignal.isSet(slot->id());
    const std::vector<WorkerId> workers = pool.markIdleLeaving(now, jobsWait);
    if (!workers.empty()) table_.mark(*slot);
    // An end of the signal is no change of the pool.
    if (jobsWait && pool.workers().count(WorkerState::idle) > 0) table_.mark(*slot, PoolTask::idle);
    leaving.insert(leaving.end(), workers.begin(), workers.end());
  }
  return leaving;
}

std::vector<WorkerPools::RollingPool> WorkerPools::rollingPools() {
  std::vector<RollingPool> rolling;
  Lock lock(mutex_);
  for (PoolSlot* const slot : slotsFor(PoolTask::release, table_, deps_)) {
    const WorkerPool& pool = slot->pool;
    if (pool.workers().all().empty() && !pool.target()) {
      table_.erase(slot->id());
    } else if (pool.isRolling()) {
      // Until the end of the release: a step may fail, or come after a pause.
      table_.mark(*slot, PoolTask::release);
      rolling.push_back({slot->id(), pool.isRetiring()});
    }
  }
  return rolling;
}

WorkerPool::Step WorkerPools::nextStep(const EndpointId& endpoint) {
  Lock lock(mutex_);
  PoolSlot* const slot = table_.change(endpoint);
  return slot == nullptr ? WorkerPool::Step{} : slot->pool.nextStep(deps_.clock.now());
}

std::optional<WorkerPools::NewWorker> WorkerPools::addWorker(const EndpointId& endpoint, const WorkerId& worker,
                                                             const WorkerPool::Step& why) {
  Lock lock(mutex_);
  PoolSlot* const slot = table_.change(endpoint);
  // The endpoint may have changed to remote workers since the decision.
  if (slot == nullptr || isRemote(slot->pool)) return std::nullopt;
  ReleasePtr release = slot->pool.addWorker(worker, why, deps_.clock.now());
  if (!release) return std::nullopt;
  return NewWorker{slot->pool.endpoint(), std::move(release)};
}

std::vector<EndpointId> WorkerPools::beginScaling() {
  const Instant now = deps_.clock.now();
  std::vector<EndpointId> ids;
  Lock lock(mutex_);
  for (PoolSlot* const slot : slotsFor(PoolTask::scaling, table_, deps_)) {
    WorkerPool& pool = slot->pool;
    table_.mark(*slot, PoolTask::plan);
    if (!pool.beginScaling(now)) continue;
    const bool isPaused = pool.endpoint()->spec.paused;
    if (pool.slots() >= pool.endpoint()->spec.workersMin && (isPaused || !deps_.queueSignal.isSet(slot->id())))
      continue;
    table_.mark(*slot, PoolTask::scaling);  // until workersMissing(): a count may fail
    ids.push_back(slot->id());
  }
  return ids;
}

ScalerView WorkerPools::scalerView(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  const PoolSlot* const slot = table_.find(endpoint);
  return slot == nullptr ? ScalerView{} : slot->pool.scalerView();
}

std::size_t WorkerPools::workersMissing(const EndpointId& endpoint, const ScalerView& view, const EndpointCounts& jobs,
                                        std::size_t others) {
  const Instant now = deps_.clock.now();
  std::size_t missing = 0;
  bool hasChanged = false;
  {
    Lock lock(mutex_);
    PoolSlot* const slot = table_.find(endpoint);
    if (slot == nullptr) return 0;
    WorkerPool& pool = slot->pool;
    const ScalerView present = pool.scalerView();
    hasChanged = present.busy != view.busy || present.coming != view.coming;
    const std::size_t most = slot->whole->spec.workersMax;
    const std::size_t room = most - std::min(most, pool.slots() + others);
    // Only workers for which both views ask: the earlier view counts no job twice that was claimed during the count,
    // and the present view counts no ended job and has the present rules.
    missing = std::min(pool.workersMissing(view, jobs, room, now), pool.workersMissing(present, jobs, room, now));
    table_.mark(*slot, PoolTask::plan);
    if (missing == 0 && !hasChanged) PoolTable::unmark(*slot, PoolTask::scaling);
  }
  if (hasChanged && jobs.inQueue > jobs.inQueueLow) deps_.queueSignal.wake();
  return missing;
}

WorkerPools::PassEnd WorkerPools::endPass() {
  Lock lock(mutex_);
  const Instant next = table_.nextTaskAt(deps_.clock.now());
  return {next, table_.visits()};
}

}  // namespace jobq

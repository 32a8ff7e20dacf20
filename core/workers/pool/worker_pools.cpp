#include "core/workers/pool/worker_pools.h"

#include <algorithm>
#include <iterator>
#include <new>
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

// Makes room for `more` elements: their addition then cannot fail.
template <class Element>
void reserveMore(std::vector<Element>& list, std::size_t more) {
  if (list.capacity() - list.size() < more) list.reserve(std::max(list.size() + more, 2 * list.capacity()));
}

// Calls visit(table, slot) for each slot that the task of a pass has to visit, and each visit adds to `decided`. A
// visit that throws std::bad_alloc ends the pass of the task, and has changed no worker: the caller carries out what
// was decided, and the task makes the other visits in the next pass.
template <class Decided, class Action>
void visitSlots(PoolTask task, PoolTable& table, const WorkerPools::Deps& deps, const Decided& decided,
                Action&& visit) {
  for (const EndpointId& endpoint : deps.queueSignal.collectNews()) (void)table.change(endpoint);
  PoolVisits visits(table, task, table.beginVisits(task, deps.clock.now()));
  try {
    visits.makeAll(visit);
  } catch (const std::bad_alloc&) {
    if (decided.empty()) throw;
    deps.queueSignal.wake();
  }
}

}  // namespace

WorkerPools::WorkerPools(const Deps& deps, const std::vector<EndpointPtr>& endpoints) : LockedPools(deps) {
  for (const EndpointPtr& endpoint : endpoints) setEndpoint(endpoint);
}

void WorkerPools::setEndpoint(const EndpointPtr& now) {
  {
    Lock lock(mutex_);
    if (PoolSlot* const slot = table_.change(now->spec.id)) {
      slot->pool.change(partOf(now, share_));
      slot->pool.setRetiring(false);
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
    slot->pool.setRetiring(true);
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
  std::vector<ClaimWant> wants;
  Lock lock(mutex_);
  const auto reserveAt = [&](PoolTable& table, PoolSlot& slot) {
    WorkerPool& pool = slot.pool;
    if (pool.endpoint()->spec.paused || pool.isRetiring()) return;
    if (!which.jobIsComing && !deps_.queueSignal.isSet(slot.id())) return;
    const bool isFree = which.finishing == nullptr && pool.workers().count(WorkerState::idle) > 0;
    if (!isFree && !(which.finishing != nullptr && mayGoOn(pool, *which.finishing))) return;
    reserveMore(wants, 1);
    ClaimWant want{slot.id(), {}};
    if (isFree) {
      want.workers = pool.workers().reserve(which.most);
      table.mark(slot);
    } else {
      want.workers.push_back(*which.finishing);
    }
    wants.push_back(std::move(want));
  };
  if (which.only == nullptr) {
    visitSlots(PoolTask::claim, table_, deps_, wants, reserveAt);
  } else if (PoolSlot* const slot = table_.find(*which.only)) {
    reserveAt(table_, *slot);
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
  visitSlots(PoolTask::stuck, table_, deps_, all, [&](PoolTable& table, PoolSlot& slot) {
    WorkerSet& workers = slot.pool.workers();
    const std::size_t busy = workers.count(WorkerState::busy);
    if (busy == 0) return;
    reserveMore(all, busy);
    std::vector<StuckWorker> stuck = workers.markStuck(slot.id(), now);
    if (!stuck.empty()) table.mark(slot);
    std::ranges::move(stuck, std::back_inserter(all));
  });
  return all;
}

std::vector<WorkerId> WorkerPools::markIdleLeaving() {
  const Instant now = deps_.clock.now();
  std::vector<WorkerId> leaving;
  Lock lock(mutex_);
  visitSlots(PoolTask::idle, table_, deps_, leaving, [&](PoolTable& table, PoolSlot& slot) {
    WorkerPool& pool = slot.pool;
    if (isRemote(pool) && pool.endpoint()->spec.workersMax > 0) return;
    if (pool.slots() <= std::min(pool.endpoint()->spec.workersMin, pool.endpoint()->spec.workersMax)) return;
    const bool jobsWait = deps_.queueSignal.isSet(slot.id());
    reserveMore(leaving, pool.workers().count(WorkerState::idle));
    std::vector<WorkerId> workers = pool.markIdleLeaving(now, jobsWait);
    if (!workers.empty()) table.mark(slot);
    // An end of the signal is no change of the pool.
    if (jobsWait && pool.workers().count(WorkerState::idle) > 0) table.mark(slot, PoolTask::idle);
    std::ranges::move(workers, std::back_inserter(leaving));
  });
  return leaving;
}

std::vector<WorkerPools::RollingPool> WorkerPools::rollingPools() {
  std::vector<RollingPool> rolling;
  Lock lock(mutex_);
  visitSlots(PoolTask::release, table_, deps_, rolling, [&](PoolTable& table, PoolSlot& slot) {
    const WorkerPool& pool = slot.pool;
    if (pool.workers().all().empty() && !pool.target()) {
      table.erase(slot.id());
    } else if (pool.isRolling()) {
      // Until the end of the release: a step may fail, or come after a pause.
      table.mark(slot, PoolTask::release);
      rolling.push_back({slot.id(), pool.isRetiring()});
    }
  });
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
  visitSlots(PoolTask::scaling, table_, deps_, ids, [&](PoolTable& table, PoolSlot& slot) {
    WorkerPool& pool = slot.pool;
    table.mark(slot, PoolTask::plan);
    if (!pool.beginScaling(now)) return;
    const bool isPaused = pool.endpoint()->spec.paused;
    if (pool.slots() >= pool.endpoint()->spec.workersMin && (isPaused || !deps_.queueSignal.isSet(slot.id()))) return;
    table.mark(slot, PoolTask::scaling);  // until workersMissing(): a count may fail
    ids.push_back(slot.id());
  });
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

#include "core/workers/pool/pool_table.h"

#include <algorithm>

namespace jobq {
namespace {

constexpr std::uint8_t kAllTasks = 63;

std::uint8_t bitOf(PoolTask task) { return static_cast<std::uint8_t>(task); }

}  // namespace

const PoolSlot* PoolTable::find(const EndpointId& endpoint) const {
  const auto found = slots_.find(endpoint);
  return found == slots_.end() ? nullptr : &found->second;
}

PoolSlot* PoolTable::find(const EndpointId& endpoint) {
  const auto found = slots_.find(endpoint);
  return found == slots_.end() ? nullptr : &found->second;
}

PoolSlot* PoolTable::change(const EndpointId& endpoint) {
  PoolSlot* const slot = find(endpoint);
  if (slot != nullptr) mark(*slot);
  return slot;
}

void PoolTable::add(const EndpointPtr& whole, const EndpointPtr& part) {
  if (changed_.capacity() <= slots_.size()) changed_.reserve(2 * slots_.size() + 1);
  mark(slots_.try_emplace(whole->spec.id, whole, part).first->second);
}

void PoolTable::erase(const EndpointId& endpoint) {
  PoolSlot* const slot = find(endpoint);
  if (slot == nullptr) return;
  if (slot->changedAt_) {  // the last slot takes the place
    changed_.back()->changedAt_ = slot->changedAt_;
    std::swap(changed_[*slot->changedAt_], changed_.back());
    changed_.pop_back();
  }
  plan(*slot, Instant::max());
  slots_.erase(slot->id());
}

void PoolTable::mark(PoolSlot& slot) noexcept {
  slot.pending_ = kAllTasks;
  if (slot.changedAt_) return;
  slot.changedAt_ = changed_.size();
  changed_.push_back(&slot);
}

void PoolTable::mark(PoolSlot& slot, PoolTask task) noexcept {
  const std::uint8_t before = slot.pending_;
  mark(slot);
  slot.pending_ = static_cast<std::uint8_t>(before | bitOf(task));
}

void PoolTable::unmark(PoolSlot& slot, PoolTask task) noexcept {
  slot.pending_ = static_cast<std::uint8_t>(slot.pending_ & ~bitOf(task));
}

std::vector<PoolSlot*> PoolTable::beginVisits(PoolTask task, Instant now) {
  markDue(now);
  if (!visitedFrom_) visitedFrom_ = now;
  std::vector<PoolSlot*> slots;
  for (PoolSlot* const slot : changed_) {
    if ((slot->pending_ & bitOf(task)) != 0) slots.push_back(slot);
  }
  for (PoolSlot* const slot : slots) unmark(*slot, task);  // behind the allocations
  visits_ += slots.size();
  return slots;
}

Instant PoolTable::nextTaskAt(Instant now) {
  for (PoolSlot* const slot : changed_) {
    if ((slot->pending_ & bitOf(PoolTask::plan)) == 0) continue;
    plan(*slot, slot->pool.nextTaskAt(visitedFrom_.value_or(now)));
    unmark(*slot, PoolTask::plan);
    ++visits_;
  }
  visitedFrom_.reset();
  std::erase_if(changed_, [](PoolSlot* slot) {
    if (slot->pending_ == 0) slot->changedAt_.reset();
    return slot->pending_ == 0;
  });
  for (std::size_t i = 0; i < changed_.size(); ++i) changed_[i]->changedAt_ = i;
  return due_.empty() ? Instant::max() : due_.begin()->first;
}

// A time in the past is a change: each task looks at the pool, and the next time is planned anew.
void PoolTable::markDue(Instant now) {
  while (!due_.empty() && due_.begin()->first <= now) {
    PoolSlot& slot = *due_.begin()->second;
    plan(slot, Instant::max());
    mark(slot);
  }
}

void PoolTable::plan(PoolSlot& slot, Instant at) {
  if (slot.due_ && (*slot.due_)->first == at) return;
  std::optional<PoolSlot::DueSlots::iterator> later;
  if (at != Instant::max()) later = due_.emplace(at, &slot);
  if (slot.due_) due_.erase(*slot.due_);
  slot.due_ = later;
}

void PoolTable::assignJob(PoolSlot& slot, const ClaimedJob& job) {
  const auto run = runs_.insert_or_assign(Attempt(job.lease.job, job.lease.attempt), &slot).first;
  slot.pool.workers().assignJob(job);
  const auto& workers = slot.pool.workers().all();
  const auto worker = workers.find(job.worker);
  if (worker == workers.end() || worker->second.lease != job.lease) runs_.erase(run);  // a refused change
}

void PoolTable::endRun(PoolSlot& slot, const WorkerId& worker) {
  const auto& workers = slot.pool.workers().all();
  const auto found = workers.find(worker);
  if (found == workers.end() || found->second.lease.job.empty()) return;
  runs_.erase(Attempt(found->second.lease.job, found->second.lease.attempt));
}

PoolSlot* PoolTable::findRun(const LeaseRef& lease) {
  const auto run = runs_.find(Attempt(lease.job, lease.attempt));
  return run == runs_.end() ? nullptr : run->second;
}

}  // namespace jobq

#include "core/workers/deferred_inserts.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace jobq {
namespace {

using InsertState = DeferredInsert::State;

// Returns true if the timer has nothing to do for the job.
bool isOver(const DeferredInsert& insert) {
  return insert.state() == InsertState::stored || insert.state() == InsertState::discarded;
}

}  // namespace

void DeferredInserts::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
}

void DeferredInserts::stop() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    changed_.notifyAll();
  }
  if (thread_.joinable()) thread_.join();
  storeAll();
}

bool DeferredInserts::mayDefer(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  const auto found = points_.find(endpoint);
  return found != points_.end() && found->second >= kProof && !stopping_;
}

void DeferredInserts::noteRun(const EndpointId& endpoint, bool isBrief) noexcept {
  if (!storage_.capabilities().has(Capability::insertBegun)) return;
  try {
    Lock lock(mutex_);
    count(endpoint, isBrief);
  } catch (const std::bad_alloc&) {  // the first run of an endpoint: later runs count
  }
}

void DeferredInserts::count(const EndpointId& endpoint, bool isBrief) {
  int& points = points_[endpoint];
  points = std::clamp(points + (isBrief ? 1 : -kPenalty), 0, kMostPoints);
}

void DeferredInserts::watch(const std::shared_ptr<DeferredInsert>& insert) {
  const Instant due = clock_.now() + kLatest;
  Lock lock(mutex_);
  watched_.emplace_hint(watched_.end(), due, insert);
  if (due < wakesAt_) changed_.notifyAll();
}

void DeferredInserts::storeAll() noexcept {
  Watched all;
  {
    Lock lock(mutex_);
    while (isStoring_) changed_.wait(mutex_);
    all.swap(watched_);
  }
  storeEach(all);
}

void DeferredInserts::loop() {
  nameThread("inserts");
  Lock lock(mutex_);
  while (!stopping_) {
    // Most runs end before kLatest. The thread wakes for the first unfinished run, not for each run that has ended.
    while (!watched_.empty() && isOver(*watched_.begin()->second)) watched_.erase(watched_.begin());
    wakesAt_ = watched_.empty() ? Instant::max() : watched_.begin()->first;
    if (clock_.now() < wakesAt_) {
      clock_.waitUntil(mutex_, changed_, wakesAt_);
      continue;
    }
    Watched due;
    for (const Instant now = clock_.now(); !watched_.empty() && watched_.begin()->first <= now;) {
      auto each = watched_.extract(watched_.begin());
      if (isOver(*each.mapped())) continue;
      const auto points = points_.find(each.mapped()->job().endpoint);
      // A hanging handler ends no run, so the run counts now.
      if (each.mapped()->state() == InsertState::deferred && points != points_.end()) count(points->first, false);
      due.insert(std::move(each));
    }
    if (due.empty()) continue;
    isStoring_ = true;
    lock.unlock();
    storeEach(due);
    due.clear();
    lock.lock();
    isStoring_ = false;
    changed_.notifyAll();
  }
}

// The storage does not have the job, so no sweep and no timeout stops the run. The caller reads 503.
void DeferredInserts::endRun(const JobId& job) noexcept {
  completions_.announce(job);
  try {
    if (stopper_ != nullptr) stopper_->stopRun({job, 1});
  } catch (const std::exception& error) {  // the run ends by itself
    log_.write(LogLevel::error, "job.unstored", error.what());
  }
}

void DeferredInserts::storeEach(const Watched& due) noexcept {
  for (const auto& [moment, insert] : due) {
    if (isOver(*insert)) continue;
    try {
      insert->store();
    } catch (const std::exception& error) {
      log_.write(LogLevel::error, "job.unstored", error.what());
      endRun(insert->job().id);
    }
  }
}

}  // namespace jobq

#include "core/workers/deferred_inserts.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

namespace jobq {
namespace {

/// Pause before a failed insert is tried again.
constexpr Millis kRetry{500};

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
  const auto found = briefRuns_.find(endpoint);
  return found != briefRuns_.end() && found->second >= kProof && !stopping_;
}

void DeferredInserts::noteRun(const EndpointId& endpoint, bool isBrief) {
  if (!storage_.insertsRuns()) return;
  Lock lock(mutex_);
  int& inRow = briefRuns_[endpoint];
  inRow = isBrief ? std::min(inRow + 1, kProof) : 0;
}

void DeferredInserts::watch(const std::shared_ptr<DeferredInsert>& insert) noexcept {
  const Instant due = clock_.now() + kLatest;
  try {
    Lock lock(mutex_);
    watched_.emplace_hint(watched_.end(), due, insert);
    // Most runs end before their moment, and the thread wakes once in that time for all of them.
    if (due < wakesAt_) changed_.notifyAll();
  } catch (const std::bad_alloc&) {
    (void)storeOne(*insert);
  }
}

void DeferredInserts::storeAll() noexcept {
  Watched all;
  {
    Lock lock(mutex_);
    all.swap(watched_);
  }
  storeEach(std::move(all));
}

void DeferredInserts::loop() {
  nameThread("inserts");
  Lock lock(mutex_);
  while (!stopping_) {
    wakesAt_ = watched_.empty() ? Instant::max() : watched_.begin()->first;
    if (clock_.now() < wakesAt_) {
      clock_.waitUntil(mutex_, changed_, wakesAt_);
      continue;
    }
    Watched due;
    for (const Instant now = clock_.now(); !watched_.empty() && watched_.begin()->first <= now;) {
      auto each = watched_.extract(watched_.begin());
      if (each.mapped()->isStored()) continue;
      briefRuns_[each.mapped()->job().endpoint] = 0;  // at once, because a handler that hangs ends no run
      due.insert(std::move(each));
    }
    lock.unlock();
    storeEach(std::move(due));
    lock.lock();
  }
}

void DeferredInserts::storeEach(Watched due) noexcept {
  while (!due.empty()) {
    auto each = due.extract(due.begin());
    if (storeOne(*each.mapped())) continue;
    each.key() = clock_.now() + kRetry;
    Lock lock(mutex_);
    watched_.insert(std::move(each));
  }
}

// Returns false if the storage does not have the job.
bool DeferredInserts::storeOne(DeferredInsert& insert) noexcept {
  try {
    insert.store();
    return true;
  } catch (const std::exception& error) {
    log_.write(LogLevel::error, "job.unstored", std::string("a running job cannot be stored yet: ") + error.what());
    return false;
  }
}

}  // namespace jobq

#include "core/jobs/queue_signal.h"

#include <utility>

namespace jobq {

QueueSignal::QueueSignal(const std::vector<EndpointId>& endpoints) {
  for (const EndpointId& endpoint : endpoints) addEndpoint(endpoint);
}

void QueueSignal::FlagTable::add(const EndpointId& endpoint) {
  Lock lock(mutex_);
  if (news_.capacity() <= flags_.size()) news_.reserve(2 * flags_.size() + 1);
  auto flags = std::make_unique<Flags>();  // before the element: without memory there is no element
  const auto [at, isNew] = flags_.try_emplace(endpoint, std::move(flags));
  if (!isNew) return;
  at->second->endpoint = &at->first;
  list(*at->second);
}

QueueSignal::Flags* QueueSignal::FlagTable::find(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  const auto found = flags_.find(endpoint);
  return found == flags_.end() ? nullptr : found->second.get();
}

bool QueueSignal::FlagTable::set(const EndpointId& endpoint, bool lowPriority) {
  Lock lock(mutex_);
  const auto found = flags_.find(endpoint);
  if (found == flags_.end()) return false;
  Flags& flags = *found->second;
  const bool wasClear = lowPriority ? flags.low.exchange(Low::set) == Low::clear : !flags.normal.exchange(true);
  if (wasClear) list(flags);
  return wasClear;
}

void QueueSignal::FlagTable::setAll() {
  Lock lock(mutex_);
  for (const auto& [endpoint, flags] : flags_) {
    flags->normal = true;
    flags->low = Low::set;
    list(*flags);
  }
}

void QueueSignal::FlagTable::note(Flags& flags) {
  Lock lock(mutex_);
  list(flags);
}

std::vector<EndpointId> QueueSignal::FlagTable::collectNews() {
  std::vector<EndpointId> endpoints;
  Lock lock(mutex_);
  endpoints.reserve(news_.size());
  for (const Flags* flags : news_) endpoints.push_back(*flags->endpoint);
  for (Flags* flags : news_) flags->isNews = false;  // behind the allocations
  news_.clear();
  return endpoints;
}

void QueueSignal::FlagTable::list(Flags& flags) {
  if (!std::exchange(flags.isNews, true)) news_.push_back(&flags);
}

bool QueueSignal::notify(const EndpointId& endpoint, bool lowPriority) {
  const bool wasClear = flags_.set(endpoint, lowPriority);
  if (wasClear) wake();
  return wasClear;
}

void QueueSignal::notifySoon(const EndpointId& endpoint, bool lowPriority) {
  if (flags_.set(endpoint, lowPriority)) hasNews_ = true;
}

void QueueSignal::flush() {
  if (hasNews_ && hasNews_.exchange(false)) wake();
}

void QueueSignal::notifyAll() {
  flags_.setAll();
  wake();
}

void QueueSignal::wake() {
  Lock lock(mutex_);
  if (std::exchange(woken_, true)) return;
  lock.unlock();
  changed_.notifyAll();
}

void QueueSignal::wait(Clock& clock, Instant deadline) {
  Lock lock(mutex_);
  while (!woken_ && clock.now() < deadline) clock.waitUntil(mutex_, changed_, deadline);
  woken_ = false;
}

bool QueueSignal::consume() {
  Lock lock(mutex_);
  return std::exchange(woken_, false);
}

bool QueueSignal::isSet(const EndpointId& endpoint) const {
  const Flags* const flags = flags_.find(endpoint);
  return flags != nullptr && (flags->normal || flags->low != Low::clear);
}

void QueueSignal::clear(const EndpointId& endpoint) {
  Flags* const flags = flags_.find(endpoint);
  if (flags == nullptr) return;
  flags->normal = false;
  flags->low = Low::clear;
}

void QueueSignal::rearm(const EndpointId& endpoint) {
  (void)flags_.set(endpoint, true);
  (void)flags_.set(endpoint, false);
}

void QueueSignal::beginCount(const EndpointId& endpoint) {
  Flags* const flags = flags_.find(endpoint);
  if (flags == nullptr) return;
  flags->low = Low::counting;
  flags->normal = false;
}

void QueueSignal::endCount(const EndpointId& endpoint, bool hasNormal, bool hasLow) {
  Flags* const flags = flags_.find(endpoint);
  if (flags == nullptr) return;
  if (hasNormal) flags->normal = true;
  if (hasNormal || hasLow) {
    // A claimer that has cleared the signal during the count expects that the next job wakes a claimer.
    if (flags->low.exchange(Low::set) != Low::clear) return;
    flags_.note(*flags);
    wake();
    return;
  }
  Low counted = Low::counting;
  flags->low.compare_exchange_strong(counted, Low::clear);
}

}  // namespace jobq

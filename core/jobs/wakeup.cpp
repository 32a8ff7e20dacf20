#include "core/jobs/wakeup.h"

#include <utility>

namespace jobq {

Wakeup::Wakeup(const std::vector<EndpointId>& endpoints) {
  for (const EndpointId& endpoint : endpoints) hang(endpoint);
}

void Wakeup::hang(const EndpointId& endpoint) {
  Lock lock(bellsMutex_);
  std::unique_ptr<Bell>& bell = bells_[endpoint];
  if (!bell) bell = std::make_unique<Bell>();
}

Wakeup::Bell* Wakeup::bellOf(const EndpointId& endpoint) const {
  Lock lock(bellsMutex_);
  const auto found = bells_.find(endpoint);
  return found == bells_.end() ? nullptr : found->second.get();
}

bool Wakeup::strike(const EndpointId& endpoint, bool lowPriority) {
  Bell* const bell = bellOf(endpoint);
  if (bell == nullptr) return false;
  return !(lowPriority ? bell->low : bell->normal).exchange(true);
}

void Wakeup::ring(const EndpointId& endpoint, bool lowPriority) {
  if (strike(endpoint, lowPriority)) nudge();
}

void Wakeup::ringAndServe(const EndpointId& endpoint, bool lowPriority) {
  if (!strike(endpoint, lowPriority)) return;
  if (serve_) {
    serve_(endpoint);
  } else {
    nudge();
  }
}

void Wakeup::nudge() {
  Lock lock(mutex_);
  if (std::exchange(nudged_, true)) return;
  lock.unlock();
  changed_.notifyAll();
}

void Wakeup::wait(Clock& clock, Instant deadline) {
  Lock lock(mutex_);
  while (!nudged_ && clock.now() < deadline) clock.waitUntil(mutex_, changed_, deadline);
  nudged_ = false;
}

bool Wakeup::take() {
  Lock lock(mutex_);
  return std::exchange(nudged_, false);
}

bool Wakeup::rings(const EndpointId& endpoint) const {
  const Bell* const bell = bellOf(endpoint);
  return bell != nullptr && (bell->normal || bell->low);
}

void Wakeup::silence(const EndpointId& endpoint) {
  Bell* const bell = bellOf(endpoint);
  if (bell == nullptr) return;
  bell->normal = false;
  bell->low = false;
}

void Wakeup::keepRinging(const EndpointId& endpoint, bool lowPriorityOnly) {
  Bell* const bell = bellOf(endpoint);
  if (bell == nullptr) return;
  bell->low = true;
  bell->normal = !lowPriorityOnly;
}

}  // namespace jobq

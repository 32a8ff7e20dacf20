#include "core/jobs/wakeup.h"

#include <utility>

namespace jobq {

Wakeup::Wakeup(const std::vector<EndpointId>& endpoints) {
  for (const EndpointId& endpoint : endpoints) bells_.try_emplace(endpoint);
}

bool Wakeup::strike(const EndpointId& endpoint, bool lowPriority) {
  const auto found = bells_.find(endpoint);
  if (found == bells_.end()) return false;
  std::atomic<bool>& bell = lowPriority ? found->second.low : found->second.normal;
  return !bell.exchange(true);
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
  const auto found = bells_.find(endpoint);
  return found != bells_.end() && (found->second.normal || found->second.low);
}

void Wakeup::silence(const EndpointId& endpoint) {
  const auto found = bells_.find(endpoint);
  if (found == bells_.end()) return;
  found->second.normal = false;
  found->second.low = false;
}

void Wakeup::keepRinging(const EndpointId& endpoint, bool lowPriorityOnly) {
  const auto found = bells_.find(endpoint);
  if (found == bells_.end()) return;
  found->second.low = true;
  found->second.normal = !lowPriorityOnly;
}

}  // namespace jobq

#include "core/jobs/wakeup.h"

namespace jobq {

void Wakeup::ring(const std::string& endpoint) {
  Lock lock(mutex_);
  // Rings while the listener is busy gather; only the first has to wake it.
  if (rung_.insert(endpoint).second && rung_.size() == 1) changed_.notifyAll();
}

void Wakeup::nudge() {
  Lock lock(mutex_);
  nudged_ = true;
  changed_.notifyAll();
}

std::set<std::string> Wakeup::wait(Clock& clock, Instant deadline) {
  Lock lock(mutex_);
  while (rung_.empty() && !nudged_ && clock.now() < deadline) clock.waitUntil(mutex_, changed_, deadline);
  nudged_ = false;
  std::set<std::string> taken;
  taken.swap(rung_);
  return taken;
}

}  // namespace jobq

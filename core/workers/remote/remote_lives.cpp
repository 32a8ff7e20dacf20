#include "core/workers/remote/remote_lives.h"

#include <exception>
#include <utility>

namespace jobq {

Instant RemoteLives::check() noexcept {
  if (!storage_.leaseLife()) return Instant::min();
  try {
    const Instant asked = clock_.now();
    note({asked, storage_.nodes().nodes()});
  } catch (const std::exception&) {
    return Instant::max();
  }
  Lock lock(mutex_);
  return changedAt_;
}

// A new life counts as a change, too: a life of the same node may have begun and ended since the last answer.
void RemoteLives::note(const NodeLives& lives) {
  std::set<Life> seen;
  for (const NodeInfo& node : lives.nodes) seen.emplace(node.name, node.epoch, node.isAlive);
  Lock lock(mutex_);
  if (lives.askedAt < askedAt_ || seen.empty()) return;
  askedAt_ = lives.askedAt;
  if (seen == lives_) return;
  lives_ = std::move(seen);
  changedAt_ = clock_.now();
}

}  // namespace jobq

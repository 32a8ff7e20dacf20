#include "core/base/backoff.h"

#include <algorithm>

namespace jobq {

bool Backoff::pause(Instant latest) {
  const std::stop_callback wake(stop_, [this] {
    Lock lock(mutex_);
    stopped_.notifyAll();
  });
  const Instant end = std::min(clock_.now() + next_, latest);
  next_ = std::min(next_ * 2, kLongestPause);
  Lock lock(mutex_);
  while (!stop_.stop_requested() && clock_.now() < end) clock_.waitUntil(mutex_, stopped_, end);
  return !stop_.stop_requested();
}

}  // namespace jobq

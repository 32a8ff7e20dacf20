#include "core/base/backoff.h"

#include <algorithm>

#include "jobq/mutex.h"

namespace jobq {

bool pauseUntil(Clock& clock, Instant end, const std::stop_token& stop) {
  Mutex mutex;  // guards no data: a condition needs a mutex
  Condition stopped;
  const std::stop_callback wake(stop, [&mutex, &stopped] {
    Lock lock(mutex);
    stopped.notifyAll();
  });
  Lock lock(mutex);
  while (!stop.stop_requested() && clock.now() < end) clock.waitUntil(mutex, stopped, end);
  return !stop.stop_requested();
}

bool Backoff::pause(Instant latest) {
  const Instant end = std::min(clock_.now() + next_, latest);
  next_ = std::min(next_ * 2, kLongestPause);
  return pauseUntil(clock_, end, stop_);
}

}  // namespace jobq

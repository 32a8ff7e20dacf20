#include "pause.h"

#include <string>

#include "jobq/error.h"

namespace jobq::trial {

void Pause::wait(Millis duration, std::string_view doing) {
  const Instant deadline = clock_.now() + duration;
  {
    // The callback takes the mutex, so a stop between the check below and the wait is not missed.
    const std::stop_callback wake(stop_, [this] {
      { Lock lock(mutex_); }
      stopped_.notifyAll();
    });
    Lock lock(mutex_);
    while (!stop_.stop_requested() && clock_.now() < deadline) clock_.waitUntil(mutex_, stopped_, deadline);
  }
  check(doing);
}

void Pause::waitForEver(std::string_view doing) {
  for (;;) wait(std::chrono::hours(1), doing);
}

void Pause::check(std::string_view doing) const {
  if (stop_.stop_requested()) throw JobFailed("the job was stopped while " + std::string(doing));
}

}  // namespace jobq::trial

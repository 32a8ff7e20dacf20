#include "core/workers/run/deadline_timer.h"

#include <algorithm>
#include <exception>

namespace jobq {
namespace {

/// Shortest time between two calls, so that deadlines close together share a call.
constexpr Millis kPause{10};

}  // namespace

void DeadlineTimer::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
}

void DeadlineTimer::stop() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    changed_.notifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

DeadlineTimer::Entry::Entry(DeadlineTimer& timer, Instant deadline) : timer_(timer), place_(timer.add(deadline)) {}

DeadlineTimer::Entry::~Entry() {
  Lock lock(timer_.mutex_);
  timer_.deadlines_.erase(place_);
}

// Wakes the thread only for a deadline earlier than its present wake time. The removal of a deadline wakes no thread,
// so a busy server wakes the timer once per execution timeout and not once per job.
std::multiset<Instant>::iterator DeadlineTimer::add(Instant deadline) {
  Lock lock(mutex_);
  const auto place = deadlines_.insert(deadline);
  if (deadline < wakesAt_) changed_.notifyAll();
  return place;
}

void DeadlineTimer::loop() {
  nameThread("deadlines");
  Lock lock(mutex_);
  while (!stopping_) {
    wakesAt_ = nextCall();
    if (clock_.now() < wakesAt_) {
      clock_.waitUntil(mutex_, changed_, wakesAt_);
      continue;
    }
    passed_ = clock_.now();
    lock.unlock();
    endOverdueOrLog();
    lock.lock();
  }
}

// A handler may ignore its stop token and keep its entry, so a passed deadline must count only once.
Instant DeadlineTimer::nextCall() const {
  const auto next = deadlines_.upper_bound(passed_);
  return next == deadlines_.end() ? Instant::max() : std::max(*next, passed_ + kPause);
}

void DeadlineTimer::endOverdueOrLog() noexcept {
  try {
    endOverdue();
  } catch (const std::exception& error) {  // the next sweep ends the jobs
    log_.write(LogLevel::error, "deadlines", error.what());
  }
}

}  // namespace jobq

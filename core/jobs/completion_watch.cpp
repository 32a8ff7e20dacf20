#include "core/jobs/completion_watch.h"

namespace jobq {
namespace {

constexpr std::chrono::milliseconds kMoment{20};

}  // namespace

CompletionWatch::Ticket::Ticket(CompletionWatch& watch, const JobId& job) : watch_(watch) {
  Lock lock(watch_.mutex_);
  place_ = watch_.waiting_.emplace(job, this);
}

CompletionWatch::Ticket::~Ticket() {
  Lock lock(watch_.mutex_);
  watch_.waiting_.erase(place_);
}

void CompletionWatch::Ticket::wait(Instant deadline, const GoneSignal& gone) {
  if (waitAMoment(deadline)) return;
  const std::stop_callback leave(gone(), [this] {
    Lock lock(watch_.mutex_);
    announced_ = true;
    done_.notifyAll();
  });
  waitLong(deadline);
}

// True: it is over. A moment of real time, whatever the clock: it is about the cost of watching a client.
bool CompletionWatch::Ticket::waitAMoment(Instant deadline) {
  const auto end = std::chrono::steady_clock::now() + kMoment;
  Lock lock(watch_.mutex_);
  while (!announced_ && !watch_.closed_ && watch_.clock_.now() < deadline) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= end) return false;
    done_.waitFor(watch_.mutex_, end - now);
  }
  return true;
}

void CompletionWatch::Ticket::waitLong(Instant deadline) {
  Lock lock(watch_.mutex_);
  while (!announced_ && !watch_.closed_ && watch_.clock_.now() < deadline) {
    watch_.clock_.waitUntil(watch_.mutex_, done_, deadline);
  }
}

void CompletionWatch::announce(const JobId& job) {
  Lock lock(mutex_);
  const auto [from, to] = waiting_.equal_range(job);
  for (auto at = from; at != to; ++at) {
    at->second->announced_ = true;
    at->second->done_.notifyAll();
  }
}

void CompletionWatch::close() {
  Lock lock(mutex_);
  closed_ = true;
  for (const auto& [job, ticket] : waiting_) ticket->done_.notifyAll();
}

}  // namespace jobq

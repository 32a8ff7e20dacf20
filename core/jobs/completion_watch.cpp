#include "core/jobs/completion_watch.h"

#include <utility>

namespace jobq {
namespace {

constexpr std::chrono::milliseconds kMoment{20};

}  // namespace

CompletionWatch::Ticket::Ticket(CompletionWatch& watch, JobKey job, Interest interest)
    : watch_(watch), job_(std::move(job)), interest_(interest) {
  Lock lock(watch_.mutex_);
  place_ = watch_.waiting_.emplace(job_.id, this);
}

CompletionWatch::Ticket::~Ticket() {
  Lock lock(watch_.mutex_);
  watch_.waiting_.erase(place_);
}

bool CompletionWatch::Ticket::wait(Instant deadline, const GoneSignal& gone) {
  if (waitAMoment(deadline)) return takeNews();
  const std::stop_callback leave(gone(), [this] {
    Lock lock(watch_.mutex_);
    left_ = true;
    changed_.notifyAll();
  });
  waitLong(deadline);
  return takeNews();
}

// True: the wait is over. A moment of real time, whatever the clock: it is about the cost of watching a client.
bool CompletionWatch::Ticket::waitAMoment(Instant deadline) {
  const auto end = std::chrono::steady_clock::now() + kMoment;
  Lock lock(watch_.mutex_);
  while (mustWait(deadline)) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= end) return false;
    changed_.waitFor(watch_.mutex_, end - now);
  }
  return true;
}

void CompletionWatch::Ticket::waitLong(Instant deadline) {
  Lock lock(watch_.mutex_);
  while (mustWait(deadline)) watch_.clock_.waitUntil(watch_.mutex_, changed_, deadline);
}

bool CompletionWatch::Ticket::mustWait(Instant deadline) const {
  return !news_ && !left_ && !watch_.closed_ && watch_.clock_.now() < deadline;
}

bool CompletionWatch::Ticket::takeNews() {
  Lock lock(watch_.mutex_);
  return std::exchange(news_, false) && !left_;
}

void CompletionWatch::announce(const JobId& job) { wake(job, true); }

void CompletionWatch::announceChunk(const JobId& job) { wake(job, false); }

void CompletionWatch::wake(const JobId& job, bool ended) {
  Lock lock(mutex_);
  const auto [from, to] = waiting_.equal_range(job);
  for (auto at = from; at != to; ++at) {
    if (!ended && at->second->interest_ != Interest::chunks) continue;
    at->second->news_ = true;
    at->second->changed_.notifyAll();
  }
}

void CompletionWatch::announceSome(std::string_view endpoint) {
  Lock lock(mutex_);
  for (const auto& [id, ticket] : waiting_) {
    if (ticket->job_.endpoint != endpoint) continue;
    ticket->news_ = true;
    ticket->changed_.notifyAll();
  }
}

void CompletionWatch::close() {
  Lock lock(mutex_);
  closed_ = true;
  for (const auto& [job, ticket] : waiting_) ticket->changed_.notifyAll();
}

}  // namespace jobq

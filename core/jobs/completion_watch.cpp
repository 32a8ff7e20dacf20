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
  if (interest_ == Interest::chunks) ++watch_.streams_;
}

CompletionWatch::Ticket::~Ticket() {
  Lock lock(watch_.mutex_);
  watch_.waiting_.erase(place_);
  if (interest_ == Interest::chunks) --watch_.streams_;
}

bool CompletionWatch::Ticket::wait(Instant deadline, const GoneSignal& gone, std::size_t bytes) {
  {
    Lock lock(watch_.mutex_);
    wanted_ = bytes;
  }
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

bool CompletionWatch::Ticket::hasNews() const {
  return news_ || (wanted_ > 0 && ended_) || (hasChunks_ && bytes_ >= wanted_);
}

bool CompletionWatch::Ticket::mustWait(Instant deadline) const {
  return !hasNews() && !left_ && !watch_.closed_ && watch_.clock_.now() < deadline;
}

bool CompletionWatch::Ticket::takeNews() {
  Lock lock(watch_.mutex_);
  const bool had = hasNews();
  news_ = hasChunks_ = false;
  bytes_ = 0;
  return had && !left_;
}

bool CompletionWatch::Ticket::clientHasLeft() const {
  Lock lock(watch_.mutex_);
  return left_;
}

void CompletionWatch::announce(const JobId& job) {
  Lock lock(mutex_);
  const auto [from, to] = waiting_.equal_range(job);
  for (auto at = from; at != to; ++at) {
    at->second->news_ = at->second->ended_ = true;
    at->second->changed_.notifyAll();
  }
}

void CompletionWatch::announceChunk(const JobId& job, std::size_t bytes) {
  Lock lock(mutex_);
  const auto [from, to] = waiting_.equal_range(job);
  for (auto at = from; at != to; ++at) {
    Ticket& ticket = *at->second;
    if (ticket.interest_ != Interest::chunks) continue;
    ticket.hasChunks_ = true;
    ticket.bytes_ += bytes;
    if (ticket.bytes_ >= ticket.wanted_) ticket.changed_.notifyAll();
  }
}

std::size_t CompletionWatch::streams() const {
  Lock lock(mutex_);
  return streams_;
}

void CompletionWatch::announceSome(std::string_view endpoint) {
  Lock lock(mutex_);
  for (const auto& [id, ticket] : waiting_) {
    if (ticket->job_.endpoint != endpoint) continue;
    ticket->news_ = ticket->ended_ = true;
    ticket->changed_.notifyAll();
  }
}

void CompletionWatch::close() {
  Lock lock(mutex_);
  closed_ = true;
  for (const auto& [job, ticket] : waiting_) ticket->changed_.notifyAll();
}

}  // namespace jobq

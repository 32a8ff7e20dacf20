#include "core/jobs/completion_notifier.h"

#include <utility>

namespace jobq {
namespace {

constexpr std::chrono::milliseconds kMoment{20};

}  // namespace

CompletionNotifier::Waiter::Waiter(CompletionNotifier& watch, JobKey job, Interest interest)
    : watch_(watch), job_(std::move(job)), interest_(interest) {
  Lock lock(watch_.mutex_);
  const bool isFirst = watch_.waiting_.empty();
  place_ = watch_.waiting_.emplace(job_.id, this);
  if (interest_ == Interest::chunks) ++watch_.streams_;
  lock.unlock();
  if (isFirst && watch_.listener_ != nullptr) watch_.listener_->waiterCame();
}

CompletionNotifier::Waiter::~Waiter() {
  Lock lock(watch_.mutex_);
  watch_.waiting_.erase(place_);
  if (interest_ == Interest::chunks) --watch_.streams_;
}

bool CompletionNotifier::Waiter::wait(Instant deadline, const DisconnectSignal& gone, std::size_t bytes) {
  {
    Lock lock(watch_.mutex_);
    wanted_ = bytes;
  }
  if (waitAMoment(deadline)) return consumeEvents();
  const std::stop_callback leave(gone(), [this] {
    Lock lock(watch_.mutex_);
    left_ = true;
    changed_.notifyAll();
  });
  waitLong(deadline);
  return consumeEvents();
}

// Returns true if the wait is over. The bound is 20 ms of real time, independent of the server's clock, because the
// reason for the bound is the cost of watching a client.
bool CompletionNotifier::Waiter::waitAMoment(Instant deadline) {
  const auto end = std::chrono::steady_clock::now() + kMoment;
  Lock lock(watch_.mutex_);
  while (mustWait(deadline)) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= end) return false;
    changed_.waitFor(watch_.mutex_, end - now);
  }
  return true;
}

void CompletionNotifier::Waiter::waitLong(Instant deadline) {
  Lock lock(watch_.mutex_);
  while (mustWait(deadline)) watch_.clock_.waitUntil(watch_.mutex_, changed_, deadline);
}

bool CompletionNotifier::Waiter::hasEvents() const {
  return news_ || (wanted_ > 0 && ended_) || (hasChunks_ && bytes_ >= wanted_);
}

bool CompletionNotifier::Waiter::mustWait(Instant deadline) const {
  return !hasEvents() && !left_ && !watch_.closed_ && watch_.clock_.now() < deadline;
}

bool CompletionNotifier::Waiter::consumeEvents() {
  Lock lock(watch_.mutex_);
  const bool had = hasEvents();
  news_ = hasChunks_ = false;
  bytes_ = 0;
  return had && !left_;
}

bool CompletionNotifier::Waiter::clientHasLeft() const {
  Lock lock(watch_.mutex_);
  return left_;
}

void CompletionNotifier::announce(const JobId& job) {
  Lock lock(mutex_);
  const auto [from, to] = waiting_.equal_range(job);
  for (auto at = from; at != to; ++at) {
    at->second->news_ = at->second->ended_ = true;
    at->second->changed_.notifyAll();
  }
}

void CompletionNotifier::announceChunk(const JobId& job, std::size_t bytes) {
  Lock lock(mutex_);
  const auto [from, to] = waiting_.equal_range(job);
  for (auto at = from; at != to; ++at) {
    Waiter& waiter = *at->second;
    if (waiter.interest_ != Interest::chunks) continue;
    waiter.hasChunks_ = true;
    waiter.bytes_ += bytes;
    if (waiter.bytes_ >= waiter.wanted_) waiter.changed_.notifyAll();
  }
}

bool CompletionNotifier::hasWaiters() const {
  Lock lock(mutex_);
  return !waiting_.empty();
}

std::vector<AwaitedJob> CompletionNotifier::awaited(const JobId& after, std::size_t most) const {
  std::vector<AwaitedJob> jobs;
  Lock lock(mutex_);
  for (auto at = waiting_.upper_bound(after); at != waiting_.end(); ++at) {
    const Waiter& waiter = *at->second;
    if (jobs.empty() || jobs.back().job.id != waiter.job_.id) {
      if (jobs.size() == most) break;
      jobs.push_back({waiter.job_, false});
    }
    if (waiter.interest_ == Interest::chunks) jobs.back().isStreamed = true;
  }
  return jobs;
}

std::size_t CompletionNotifier::streams() const {
  Lock lock(mutex_);
  return streams_;
}

void CompletionNotifier::announceAllOf(std::string_view endpoint) {
  Lock lock(mutex_);
  for (const auto& [id, waiter] : waiting_) {
    if (waiter->job_.endpoint != endpoint) continue;
    waiter->news_ = waiter->ended_ = true;
    waiter->changed_.notifyAll();
  }
}

void CompletionNotifier::announceAll() {
  Lock lock(mutex_);
  for (const auto& [id, waiter] : waiting_) {
    waiter->news_ = true;
    waiter->changed_.notifyAll();
  }
}

void CompletionNotifier::close() {
  Lock lock(mutex_);
  closed_ = true;
  for (const auto& [job, waiter] : waiting_) waiter->changed_.notifyAll();
}

}  // namespace jobq

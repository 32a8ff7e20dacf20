#include "core/jobs/completion_notifier.h"

#include <algorithm>
#include <utility>

#include "core/base/service.h"

namespace jobq {

CompletionNotifier::CompletionNotifier(Clock& clock) : clock_(clock) {
  thread_ = std::thread([this] { watchDeadlines(); });
}

CompletionNotifier::~CompletionNotifier() { close(); }

CompletionNotifier::Waiter::Waiter(CompletionNotifier& notifier, JobKey job, Interest interest)
    : notifier_(notifier), job_(std::move(job)), interest_(interest) {
  Lock lock(notifier_.mutex_);
  const bool isFirst = notifier_.waiting_.empty();
  place_ = notifier_.waiting_.emplace(job_.id, this);
  if (interest_ == Interest::chunks) ++notifier_.streams_;
  if (interest_ == Interest::changes) ++notifier_.changeWaiters_;
  lock.unlock();
  if (isFirst && notifier_.listener_ != nullptr) notifier_.listener_->waiterCame();
}

CompletionNotifier::Waiter::~Waiter() {
  Lock lock(notifier_.mutex_);
  disarm();
  notifier_.waiting_.erase(place_);
  if (interest_ == Interest::chunks) --notifier_.streams_;
  if (interest_ == Interest::changes) --notifier_.changeWaiters_;
}

CompletionNotifier::Progress CompletionNotifier::Waiter::poll(Instant deadline, const WaitingCaller& caller,
                                                              std::size_t bytes) {
  const Lock lock(notifier_.mutex_);
  wanted_ = bytes;
  return pollEvents(deadline, caller);
}

CompletionNotifier::Progress CompletionNotifier::Waiter::pollChanges(Instant deadline, Instant changesFrom,
                                                                     const WaitingCaller& caller) {
  const Lock lock(notifier_.mutex_);
  changesFrom_ = changesFrom;
  return pollEvents(deadline, caller);
}

CompletionNotifier::Progress CompletionNotifier::Waiter::pollEvents(Instant deadline, const WaitingCaller& caller) {
  disarm();
  if (!caller.hasLeft && mustWait(deadline)) {
    arm(hasChanged_ ? std::min(deadline, changesFrom_) : deadline, caller.call);
    return Progress::pending;
  }
  const bool had = hasEvents();
  news_ = hasChunks_ = false;
  bytes_ = 0;
  if (had) hasChanged_ = false;
  return had && !caller.hasLeft ? Progress::event : Progress::over;
}

void CompletionNotifier::Waiter::arm(Instant deadline, SuspendedCall call) {
  notifier_.armed_.insert({deadline, this, call, interest_ == Interest::end});
  deadline_ = deadline;
  armed_ = true;
  if (deadline < notifier_.sleepsUntil_) notifier_.deadlinesChanged_.notifyOne();
}

void CompletionNotifier::Waiter::disarm() {
  if (!std::exchange(armed_, false)) return;
  notifier_.armed_.erase({deadline_, this, {}});
}

bool CompletionNotifier::Waiter::hasEvents() const {
  return news_ || (wanted_ > 0 && ended_) || (hasChunks_ && bytes_ >= wanted_) ||
         (hasChanged_ && notifier_.clock_.now() >= changesFrom_);
}

bool CompletionNotifier::Waiter::mustWait(Instant deadline) const {
  return !hasEvents() && !notifier_.closed_ && notifier_.clock_.now() < deadline;
}

void CompletionNotifier::wake(Waiter& waiter, ArmedWaits& ready) noexcept {
  if (!std::exchange(waiter.armed_, false)) return;
  ready.insert(armed_.extract({waiter.deadline_, &waiter, {}}));
}

void CompletionNotifier::resumeAll(const ArmedWaits& ready) noexcept {
  for (const ArmedWait& wait : ready) wait.call.resume();
}

void CompletionNotifier::watchDeadlines() {
  nameThread("wait-deadlines");
  Lock lock(mutex_);
  while (!closed_) {
    // An early end of a wait leaves the thread asleep until the deadline: the next wait mostly ends later, and then
    // wakes no thread.
    sleepsUntil_ = armed_.empty() ? Instant::max() : armed_.begin()->deadline;
    if (armed_.empty()) {
      deadlinesChanged_.wait(mutex_);
      continue;
    }
    if (clock_.now() < sleepsUntil_) {
      clock_.waitUntil(mutex_, deadlinesChanged_, sleepsUntil_);
      continue;
    }
    const ArmedWaits ready = extractOverdue();
    lock.unlock();
    resumeAll(ready);
    lock.lock();
  }
}

CompletionNotifier::ArmedWaits CompletionNotifier::extractOverdue() {
  ArmedWaits ready;
  const Instant now = clock_.now();
  while (!armed_.empty() && armed_.begin()->deadline <= now) wake(*armed_.begin()->waiter, ready);
  return ready;
}

CompletionNotifier::ArmedWaits CompletionNotifier::extractWaitsOf(const JobId& job) {
  ArmedWaits ready;
  Lock lock(mutex_);
  const auto [from, to] = waiting_.equal_range(job);
  for (auto at = from; at != to; ++at) {
    at->second->news_ = at->second->ended_ = true;
    wake(*at->second, ready);
  }
  return ready;
}

void CompletionNotifier::announce(const JobId& job) { resumeAll(extractWaitsOf(job)); }

void CompletionNotifier::announceHere(const JobId& job) {
  // HTTP threads continue the other calls: a thousand callers of a job must not delay the worker's next job.
  bool mayAnswer = true;
  for (const ArmedWait& wait : extractWaitsOf(job)) {
    if (wait.isForEnd && std::exchange(mayAnswer, false)) {
      wait.call.continueHere();
    } else {
      wait.call.resume();
    }
  }
}

void CompletionNotifier::announceChunk(const JobId& job, std::size_t bytes) {
  ArmedWaits ready;
  {
    Lock lock(mutex_);
    const auto [from, to] = waiting_.equal_range(job);
    for (auto at = from; at != to; ++at) {
      Waiter& waiter = *at->second;
      if (waiter.interest_ == Interest::end || waiter.interest_ == Interest::changes) continue;
      waiter.hasChunks_ = true;
      waiter.bytes_ += bytes;
      if (waiter.bytes_ >= waiter.wanted_) wake(waiter, ready);
    }
  }
  resumeAll(ready);
}

// The thread of the deadlines continues the call, when the waiter wants to hear of a change. A job that changes often
// thus costs no more than one that changes once before that moment.
void CompletionNotifier::announceChange(const JobId& job) {
  if (changeWaiters_ == 0) return;
  const Lock lock(mutex_);
  const auto [from, to] = waiting_.equal_range(job);
  for (auto at = from; at != to; ++at) {
    Waiter& waiter = *at->second;
    if (waiter.interest_ != Interest::changes || std::exchange(waiter.hasChanged_, true)) continue;
    if (!waiter.armed_ || waiter.deadline_ <= waiter.changesFrom_) continue;
    auto wait = armed_.extract({waiter.deadline_, &waiter, {}});
    wait.value().deadline = waiter.deadline_ = waiter.changesFrom_;
    armed_.insert(std::move(wait));
    if (waiter.deadline_ < sleepsUntil_) deadlinesChanged_.notifyOne();
  }
}

bool CompletionNotifier::hasWaiters() const {
  Lock lock(mutex_);
  return !waiting_.empty();
}

bool CompletionNotifier::isAwaited(const JobId& job) const {
  Lock lock(mutex_);
  return waiting_.contains(job);
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
    if (waiter.interest_ != Interest::end) jobs.back().isStreamed = true;
  }
  return jobs;
}

std::size_t CompletionNotifier::streams() const {
  Lock lock(mutex_);
  return streams_;
}

Millis CompletionNotifier::roomPause() const {
  constexpr Millis kLeast{100};
  constexpr Millis kMost{5'000};
  Lock lock(mutex_);
  return std::clamp(Millis(static_cast<Millis::rep>(waiting_.size())), kLeast, kMost);
}

void CompletionNotifier::announceAllOf(std::string_view endpoint) {
  ArmedWaits ready;
  {
    Lock lock(mutex_);
    for (const auto& [id, waiter] : waiting_) {
      if (waiter->job_.endpoint != endpoint) continue;
      waiter->news_ = waiter->ended_ = true;
      wake(*waiter, ready);
    }
  }
  resumeAll(ready);
}

void CompletionNotifier::announceAll() {
  ArmedWaits ready;
  {
    Lock lock(mutex_);
    for (const auto& [id, waiter] : waiting_) {
      waiter->news_ = true;
      wake(*waiter, ready);
    }
  }
  resumeAll(ready);
}

void CompletionNotifier::close() {
  ArmedWaits ready;
  {
    Lock lock(mutex_);
    closed_ = true;
    for (const auto& [job, waiter] : waiting_) wake(*waiter, ready);
    deadlinesChanged_.notifyAll();
  }
  resumeAll(ready);
  if (thread_.joinable()) thread_.join();
}

}  // namespace jobq

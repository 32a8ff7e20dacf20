#include "core/base/call_timer.h"

namespace jobq {
namespace {

constexpr Millis kInterval{1'000};

}  // namespace

CallTimer::CallTimer(Clock& clock, Log& log) : clock_(clock), periodic_("call-timer", clock, log, kInterval, *this) {}

void CallTimer::stop() {
  periodic_.stop();
  std::vector<SuspendedCall> calls;
  {
    Lock lock(mutex_);
    isStopped_ = true;
    for (const auto& [at, call] : calls_) calls.push_back(call);
    calls_.clear();
  }
  resumeAll(calls);
}

bool CallTimer::isStopped() {
  Lock lock(mutex_);
  return isStopped_;
}

void CallTimer::resumeAt(Instant at, SuspendedCall call) {
  {
    Lock lock(mutex_);
    if (!isStopped_) {
      calls_.emplace(at, call);
      return;
    }
  }
  call.resume();
}

void CallTimer::run() {
  std::vector<SuspendedCall> calls;
  {
    Lock lock(mutex_);
    const auto end = calls_.upper_bound(clock_.now());
    for (auto at = calls_.begin(); at != end; ++at) calls.push_back(at->second);
    calls_.erase(calls_.begin(), end);
  }
  resumeAll(calls);
}

void CallTimer::resumeAll(const std::vector<SuspendedCall>& calls) noexcept {
  for (const SuspendedCall& call : calls) call.resume();
}

}  // namespace jobq

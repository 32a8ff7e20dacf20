#include "core/worker_program/call_pauses.h"

#include <utility>

namespace jobq::worker {

CallPauses::CallPauses(std::string calls, Clock& clock, Log& log, std::stop_token stop)
    : calls_(std::move(calls)), clock_(clock), log_(log), stop_(std::move(stop)) {}

bool CallPauses::pause(const std::string& why, Instant latest) {
  if (stop_.stop_requested()) return false;
  if (!why.empty() && !isLogged_) {
    log_.write(LogLevel::warning, "server.failing", calls_ + " fail and are repeated: " + why);
    isLogged_ = true;
  }
  if (!backoff_) backoff_.emplace(clock_, stop_);
  return backoff_->pause(latest);
}

void CallPauses::noteSuccess() {
  if (isLogged_) log_.write(LogLevel::information, "server.answering", calls_ + " succeed again");
  isLogged_ = false;
  backoff_.reset();
}

}  // namespace jobq::worker

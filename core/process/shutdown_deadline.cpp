#include "core/process/shutdown_deadline.h"

#include <unistd.h>

#include <chrono>
#include <utility>

namespace jobq {

ShutdownDeadline::ShutdownDeadline(Millis limit, std::string reason, Log& log)
    : reason_(std::move(reason)), log_(log), thread_([this, limit] { await(limit); }) {}

ShutdownDeadline::~ShutdownDeadline() {
  {
    Lock lock(mutex_);
    isOver_ = true;
    changed_.notifyAll();
  }
  thread_.join();
}

void ShutdownDeadline::await(Millis limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  {
    Lock lock(mutex_);
    while (!isOver_) {
      const auto left = std::chrono::ceil<Millis>(end - std::chrono::steady_clock::now());
      if (left <= Millis::zero()) break;
      changed_.waitFor(mutex_, left);
    }
    if (isOver_) return;
  }
  log_.write(LogLevel::error, "server.stuck", reason_ + "; accepted jobs are stored, and the process ends now");
  _exit(0);
}

}  // namespace jobq

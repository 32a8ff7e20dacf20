#include "core/base/periodic.h"

#include <pthread.h>

#include <exception>

namespace jobq {

void nameThread(const char* name) noexcept { pthread_setname_np(pthread_self(), name); }

Periodic::Periodic(const char* name, Clock& clock, Log& log, Millis interval, PeriodicTask& task)
    : name_(name), clock_(clock), log_(log), interval_(interval), task_(task) {}

void Periodic::start() {
  if (thread_.joinable()) return;
  thread_ = std::thread([this, due = clock_.now() + interval_] { loop(due); });
}

void Periodic::stop() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    changed_.notifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Periodic::loop(Instant due) {
  nameThread(name_);
  for (;;) {
    {
      Lock lock(mutex_);
      while (!stopping_ && clock_.now() < due) clock_.waitUntil(mutex_, changed_, due);
      if (stopping_) return;
    }
    // The interval counts from before the run: the task did not see the time passing during a run, and is due at once
    // after a long run.
    const Instant began = clock_.now();
    runOnce();
    due = began + interval_;
  }
}

void Periodic::runOnce() noexcept {
  try {
    task_.run();
  } catch (const std::exception& error) {
    log_.write(LogLevel::error, name_, error.what());
  }
}

}  // namespace jobq

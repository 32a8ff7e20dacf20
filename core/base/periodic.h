// A task repeated on a separate thread, by the server's clock.
#pragma once

#include <exception>
#include <string>
#include <thread>

#include "core/base/service.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// A task repeated by a Periodic.
class PeriodicTask {
 public:
  virtual ~PeriodicTask() = default;

  /// Called on the thread of the Periodic only. May throw any std::exception.
  virtual void run() = 0;
};

/// Runs the task once in each interval. An exception of the task is logged under the name of the service, and the task
/// runs again at the next time: failures of the infrastructure are caught at three borders, and a periodic service is a
/// border. `name`, `clock`, `log` and `task` outlive the service.
class Periodic final : public Service {
 public:
  Periodic(const char* name, Clock& clock, Log& log, Millis interval, PeriodicTask& task);
  ~Periodic() override { stop(); }

  /// Starts the thread. The first run is one interval after the call.
  void start() override;
  void stop() override;

 private:
  void loop(Instant due);
  void runOnce() noexcept;

  const char* name_;
  Clock& clock_;
  Log& log_;
  const Millis interval_;
  PeriodicTask& task_;

  Mutex mutex_;
  Condition changed_;
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// Calls the functions in order, each whatever the result of the others, and then throws the first exception.
template <class... Tasks>
void performAll(const Tasks&... tasks) {
  std::exception_ptr fault;
  const auto perform = [&fault](const auto& task) {
    try {
      task();
    } catch (...) {
      if (!fault) fault = std::current_exception();
    }
  };
  (perform(tasks), ...);
  if (fault) std::rethrow_exception(fault);
}

}  // namespace jobq

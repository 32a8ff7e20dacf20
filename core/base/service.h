// The interface of the parts of the server that Application, another service or main.cpp starts and stops. Other owners
// of threads, such as HttpThreadPool and ThreadExecutor, end their threads in stop() or in the destructor.
#pragma once

namespace jobq {

class Service {
 public:
  virtual ~Service() = default;

  /// Idempotent. Throws if the service cannot run, and leaves no thread running then.
  virtual void start() = 0;

  /// Idempotent; blocks until every thread of the service has ended. Every wait inside ends on stop.
  virtual void stop() = 0;
};

/// Names the calling thread for debuggers and profilers; at most 15 characters.
void nameThread(const char* name) noexcept;

}  // namespace jobq

// The interface of the parts of the server that Application, another service or main.cpp starts and stops. Other owners
// of threads, such as HttpThreadPool and ThreadExecutor, end their threads in stop() or in the destructor.
#pragma once

namespace jobq {

/// A part with threads of its own. The thread that starts and stops the server calls both functions.
class Service {
 public:
  virtual ~Service() = default;

  /// Starts the threads of the service. A second call changes nothing. Throws std::system_error if the machine has no
  /// thread left, or the exception that the implementation names; no thread of the service is running then.
  virtual void start() = 0;

  /// Ends the threads of the service, and blocks until the last thread has ended: every wait inside ends at once. A
  /// second call changes nothing.
  virtual void stop() = 0;
};

/// Names the calling thread for debuggers and profilers; at most 15 characters.
void nameThread(const char* name) noexcept;

}  // namespace jobq

// Everything that owns a thread implements Service. Application starts services in order and stops them in reverse.
#pragma once

namespace jobq {

class Service {
 public:
  virtual ~Service() = default;

  /// Idempotent. Throws when it cannot run; nothing is then left running.
  virtual void start() = 0;

  /// Idempotent; blocks until every thread of the service has ended. Every wait inside ends on stop.
  virtual void stop() = 0;
};

/// Names the calling thread for debuggers and profilers; at most 15 characters.
void nameThread(const char* name) noexcept;

}  // namespace jobq

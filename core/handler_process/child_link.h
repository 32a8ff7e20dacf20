// The worker's end of the messages with the process of a handler.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "core/handler_process/child_process.h"
#include "core/handler_process/handler_messages.h"
#include "core/handler_process/wake_descriptor.h"
#include "jobq/time.h"

namespace jobq::worker {

/// One thread makes, uses and deletes the object. No call waits for the process to read: a process that does not read
/// delays only its own job.
class ChildLink {
 public:
  /// The event that ended a wait.
  enum class Event { message, woken, late, ended };

  /// Starts the process. `clock` outlives the object. Throws std::system_error.
  explicit ChildLink(Clock& clock) : clock_(clock) {}

  /// Returns true while the process is alive and has sent nothing more, so that the process waits for a job.
  bool isIdle() const;
  /// Queues the bytes of a message.
  void post(std::string_view bytes) { unsent_ += bytes; }
  /// Returns the bytes that the process has not read yet.
  std::size_t unsentBytes() const { return unsent_.size() - sent_; }
  /// Sends the queued bytes and blocks until a message has come, `wake` is notified, the time is `latest`, or the
  /// process has ended. Throws MalformedMessage.
  Event await(const WakeDescriptor& wake, Instant latest);
  /// Returns the message of the last await().
  Message extractMessage() { return std::move(message_); }
  /// Kills the process. Returns how the process has ended.
  std::string kill() { return process_.end(Millis(0)); }

 private:
  /// Both move the bytes that need no wait, and return false if the process has ended.
  bool receive();
  bool send();

  Clock& clock_;
  ChildProcess process_;
  MessageReader reader_;
  Message message_;
  std::string unsent_;
  std::size_t sent_ = 0;  // bytes of unsent_ that the process has
  std::string room_;      // for receive()
};

}  // namespace jobq::worker

// The messages with the worker, in the process of a handler.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "core/handler_process/handler_messages.h"
#include "jobq/mutex.h"

namespace jobq::worker {

/// Used by the thread of the handler. A separate thread of the object reads, so that a stop reaches a busy handler. The
/// process ends at once if, while the handler is busy, the worker has ended or sends bytes that are not a message.
class ParentLink {
 public:
  /// `socket` is an open socket and stays open.
  explicit ParentLink(int socket);
  ~ParentLink();
  ParentLink(const ParentLink&) = delete;
  ParentLink& operator=(const ParentLink&) = delete;

  /// Blocks until the worker sends a setup or a job, and returns the message. Returns no value once the worker has
  /// closed the socket.
  std::optional<Message> awaitWork();
  /// Returns the token of the job that awaitWork() has returned last.
  std::stop_token stopToken() const;
  /// Sends the bytes of a message.
  void send(std::string_view bytes) const;
  /// Blocks until the worker answers a chunk or a progress.
  Message awaitAnswer();

 private:
  void readAll();
  void accept(Message message);

  const int socket_;
  mutable Mutex mutex_;
  Condition changed_;
  std::optional<Message> work_ JOBQ_GUARDED_BY(mutex_);
  std::optional<Message> answer_ JOBQ_GUARDED_BY(mutex_);
  std::stop_source stop_ JOBQ_GUARDED_BY(mutex_);
  bool isIdle_ JOBQ_GUARDED_BY(mutex_) = true;  // no handler is at work
  bool isOver_ JOBQ_GUARDED_BY(mutex_) = false;
  std::thread reader_;
};

}  // namespace jobq::worker

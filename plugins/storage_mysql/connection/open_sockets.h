// The sockets of the open connections to the database. The client library cannot be interrupted: a call whose network
// is dead ends after kAnswerTime, or when another thread shuts down the socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "jobq/mutex.h"

namespace jobq::mysql {

/// Any thread may call the methods.
class OpenSockets {
 public:
  OpenSockets() = default;
  OpenSockets(const OpenSockets&) = delete;
  OpenSockets& operator=(const OpenSockets&) = delete;

  /// Shuts all sockets down: calls under way fail as if the server had closed their connections. No connection may be
  /// opened until allowOpening().
  void cutAll() noexcept;
  void allowOpening() noexcept { isCut_ = false; }
  bool isCut() const noexcept { return isCut_; }

  /// Shuts down the sockets of the generations before `generation` (server_in_use.h), also sockets added later.
  void cutBefore(std::uint64_t generation) noexcept;

 private:
  friend class OpenSocket;

  std::atomic<bool> isCut_ = false;
  Mutex mutex_;
  std::map<int, std::uint64_t> descriptors_ JOBQ_GUARDED_BY(mutex_);  // with the generation of each socket
  std::uint64_t oldest_ JOBQ_GUARDED_BY(mutex_) = 0;                  // oldest generation with open sockets
};

/// Keeps a socket among the open sockets. Holds a duplicate of the descriptor, because the client library may close the
/// socket at any time, and another file may get the number then.
class OpenSocket {
 public:
  /// `socket` is open, and is shut down at once after cutAll(), or if the generation has ended. Without a further
  /// descriptor in the process the socket is never shut down.
  OpenSocket(std::shared_ptr<OpenSockets> sockets, int socket, std::uint64_t generation = 0);
  ~OpenSocket();
  OpenSocket(const OpenSocket&) = delete;
  OpenSocket& operator=(const OpenSocket&) = delete;

 private:
  const std::shared_ptr<OpenSockets> sockets_;
  const int descriptor_;
};

}  // namespace jobq::mysql

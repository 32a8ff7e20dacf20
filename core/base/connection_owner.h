// The owner of a connection of clients, seen by the transport.
#pragma once

namespace jobq {

/// What a connection stands for, beyond its requests. The connection destroys its reference when it ends, on any thread
/// and perhaps under a lock of the transport: the destructor calls nothing of the transport.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;

  /// Returns true if the connection must not be closed for being idle now. Asked each time when `server.keepAlive` is
  /// over. Any thread.
  virtual bool needsConnection() const noexcept = 0;
};

}  // namespace jobq

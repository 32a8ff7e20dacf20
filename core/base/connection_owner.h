// The owner of a connection of clients, seen by the transport.
#pragma once

namespace jobq {

/// The owner of a connection is the client that makes its requests, such as a remote worker. The connection destroys
/// its reference when it ends, on any thread and perhaps under a lock of the transport, so the destructor calls nothing
/// of the transport.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;

  /// Returns true if the connection must not be closed for being idle now. Asked each time when `server.keepAlive` is
  /// over. Any thread.
  virtual bool needsConnection() const noexcept = 0;
};

}  // namespace jobq

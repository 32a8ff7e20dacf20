// The owner of a connection of clients, seen by the transport.
#pragma once

namespace jobq {

/// How a connection has ended. Only a torn connection is a sign that the client is gone.
enum class ConnectionEnd {
  inOrder,  ///< ended by this server, or by the client after some idle seconds
  torn      ///< broken off within a call, or closed by the client soon after an answer
};

/// The owner of a connection is the client that makes its requests, such as a remote worker. The connection destroys
/// its reference when it ends, on any thread and perhaps under a lock of the transport, so neither the destructor nor
/// noteEnd() calls anything of the transport.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;

  /// Returns true if the connection must not be closed for being idle now. Asked each time when `server.keepAlive` is
  /// over. Any thread.
  virtual bool needsConnection() const noexcept = 0;
  /// Notes that the connection had the owner `former` until now. Called at most once, before noteEnd().
  virtual void noteFormer(const ConnectionOwner& former) const noexcept = 0;
  /// Notes the end of the connection. Called once, before the connection destroys its reference. Not called for an
  /// owner that has lost the connection to the owner of a later request.
  virtual void noteEnd(ConnectionEnd end) const noexcept = 0;
};

}  // namespace jobq

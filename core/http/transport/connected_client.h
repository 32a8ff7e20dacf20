// The client of a request, seen by code that waits on the client's behalf.
#pragma once

#include <memory>
#include <stop_token>

#include "core/base/connection_owner.h"
#include "core/base/suspended_call.h"

namespace jobq {

/// Valid while the request of the client is open. One thread at a time.
class ConnectedClient {
 public:
  virtual ~ConnectedClient() = default;

  /// Returns a token that is requested soon after the client has closed its side, for a call that works on its thread.
  /// The first call starts the watch of the socket. Such a call is not suspended. Without a watch, as under Poco's
  /// server, the token is never requested.
  virtual std::stop_token disconnected() { return {}; }

  /// Returns true if the client has closed its side since the first suspension of the call, or since setOwner(). Asks
  /// the socket.
  virtual bool hasLeft() const noexcept = 0;
  /// Lets the connection keep `owner` until it ends or a later request names another owner. Under Poco's server, which
  /// does not tell the end of a connection, the request keeps the owner.
  virtual void setOwner(std::shared_ptr<const ConnectionOwner> owner) noexcept = 0;
  /// Returns the name under which the call is continued.
  virtual SuspendedCall call() noexcept = 0;
  /// Returns false on a thread with many requests, one behind the other: the caller must not wait for a disk, for a
  /// lock with long holders, or for another thread.
  virtual bool mayBlock() const noexcept { return true; }
};

}  // namespace jobq

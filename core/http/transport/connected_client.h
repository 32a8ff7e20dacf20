// The client of a request, seen by code that waits on the client's behalf.
#pragma once

#include <stop_token>

namespace jobq {

/// Valid while the request of the client is served. One thread.
class ConnectedClient {
 public:
  virtual ~ConnectedClient() = default;

  /// Returns a token that is requested soon after the client has closed its side. The first call starts the watch of
  /// the socket.
  virtual std::stop_token disconnected() = 0;
};

}  // namespace jobq

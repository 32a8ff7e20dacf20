// A connection of a worker to the server, kept between calls.
#pragma once

#include <memory>
#include <string>

#include "core/client/http_session.h"
#include "jobq/time.h"

namespace Poco::Net {
class HTTPClientSession;
class HTTPRequest;
}  // namespace Poco::Net

namespace jobq::worker {

/// An answer of the server.
struct Answer {
  int status = 0;
  std::string body;     ///< of a success
  std::string refusal;  ///< the sentence of any other status

  bool isSuccess() const { return status >= 200 && status <= 299; }
  /// Returns true if the same call may succeed later.
  bool isTransient() const { return status >= 500 || status == 408 || status == 429; }
};

/// Not thread-safe. A connection that the server has closed meanwhile is replaced without an error.
class ServerConnection {
 public:
  /// `server` and `clock` outlive the object. A call fails after `silence` milliseconds without a byte of the server.
  /// Connects at the first call.
  ServerConnection(const cli::ServerAddress& server, std::string key, Millis silence, Clock& clock);
  ~ServerConnection();

  /// Calls `path` and returns the answer with any status. Throws CommandError(unreachable) if no whole answer came.
  Answer get(const std::string& path);
  /// Posts `body` as JSON. The server may have the body even if the call throws.
  Answer post(const std::string& path, const std::string& body);

 private:
  Answer invocation(const std::string& method, const std::string& path, const std::string& body);
  Answer exchange(Poco::Net::HTTPRequest& request, const std::string& body);

  const cli::ServerAddress& server_;
  const std::string key_;
  const Millis silence_;
  Clock& clock_;
  std::unique_ptr<Poco::Net::HTTPClientSession> session_;  // null without a connection
  Instant usedAt_{};
};

}  // namespace jobq::worker

// One call of an HTTP server on a Unix socket, bounded in time and memory. No call reaches a network, so no address is
// judged.
#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "jobq/time.h"

namespace jobq::docker {

/// Receiver of an answer's body in pieces. Called on the thread of the call.
class BodySink {
 public:
  /// Returns false if no more pieces are wanted; the call then has no answer.
  virtual bool addPiece(std::string_view piece) = 0;

 protected:
  ~BodySink() = default;
};

/// A call.
struct SocketCall {
  std::string method;
  std::string path;                       ///< with the query, encoded
  std::string body;                       ///< JSON, or empty for a call without a body
  std::vector<std::string> headers = {};  ///< lines without their end
  Millis limit{10'000};                   ///< bound of the whole call
  Millis silence{0};                      ///< longest time without a byte, in whole seconds; 0: no bound but `limit`
  std::size_t mostBytes = 1024 * 1024;    ///< of the body; more is a failure
  BodySink* sink = nullptr;               ///< receives the body of an answer 200 in place of SocketAnswer::body
};

/// An answer of any status, complete.
struct SocketAnswer {
  int status = 0;
  std::string body;
};

/// A call without a complete answer.
struct NoAnswer {
  std::string reason;       ///< a clause
  bool wasReached = false;  ///< a connection was made: the server may carry out the call
};

/// Makes a call on the socket at `path` and blocks until the answer is complete, `call.limit` has passed, or a request
/// on `stop` came. Any thread, many calls at once. Throws only std::bad_alloc.
std::variant<SocketAnswer, NoAnswer> callSocket(const std::string& path, const SocketCall& call,
                                                const std::stop_token& stop);

/// Returns the text for a part of a path or a query: every byte except letters, digits, '-', '.', '_' and '~' is
/// encoded. Pure.
std::string encodeForUrl(std::string_view text);

}  // namespace jobq::docker

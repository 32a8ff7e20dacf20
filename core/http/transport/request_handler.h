// The interface between the connections and the server that answers their requests. The transport knows heads, bodies
// and bytes; keys, endpoints and jobs are behind this interface.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace jobq {

class ServerRequest;
class ServerResponse;

/// One request whose head has been judged. One thread at a time.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  /// The state of the request when handle() returns.
  enum class Progress {
    answered,         ///< the answer was sent, or the connection ends without an answer
    waitsForResume,   ///< goes on when CallResumer::resume() is called for the connection, or the client leaves
    waitsBriefly,     ///< the same, and the event is likely to come within milliseconds
    waitsForStorage,  ///< goes on when CallResumer::resumeAtReactor() is called, within milliseconds
    waitsForOutput,   ///< goes on when the sent parts of an open response have left, or the client has left
    waitsForInput     ///< goes on when further bytes of the body have come, or BodyReader::timeLeft() is over
  };
  /// Reads the body and sends one answer. After a progress other than `answered` any thread calls again with the same
  /// arguments behind the named event; meanwhile the connection has no thread, or, for `waitsBriefly`, may keep it.
  /// Throws nothing: a broken connection is marked by ServerResponse::closeAfter().
  virtual Progress handle(ServerRequest& request, ServerResponse& response) = 0;

  /// Returns true if handle() never blocks when ConnectedClient::mayBlock() returns false: the reactor thread may serve
  /// the request.
  virtual bool isQuick() const noexcept { return false; }
};

/// Any number of threads, one request each. Outlives the connections.
class RequestHandlerFactory {
 public:
  virtual ~RequestHandlerFactory() = default;

  /// Judges the head of `request` before a byte of the body is read and before `100 Continue`. Returns the handler of
  /// the request; null if `request.mayBlock()` is false and the judgement would have to block: a thread that may block
  /// calls again. Throws std::bad_alloc only.
  virtual std::unique_ptr<RequestHandler> make(const ServerRequest& request) = 0;

  /// Returns true if the reactor thread may call make(). The value is constant.
  virtual bool makesQuickly() const noexcept { return false; }

  /// Ends a turn of the reactor thread, behind some quick requests.
  virtual void endTurn() noexcept {}

  /// Returns the body of an answer that the transport gives by itself, such as 400 for a malformed head: JSON text with
  /// the sentence.
  virtual std::string errorBody(std::string_view sentence) const = 0;
};

}  // namespace jobq

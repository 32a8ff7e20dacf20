// Poco's interfaces of an HTTP server, and what the server's own transport adds to these interfaces. The transport
// knows heads, bodies and bytes; keys, endpoints and jobs are behind the interfaces.
#pragma once

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/suspended_call.h"
#include "core/http/transport/connected_client.h"
#include "core/http/transport/request_head.h"
#include "jobq/mutex.h"

namespace jobq {

/// One request whose head has been judged. One thread at a time. handleRequest() reads the body and sends one answer;
/// it throws nothing, and marks a broken connection by RequestExtension::abandon().
class RequestHandler : public Poco::Net::HTTPRequestHandler {
 public:
  /// The state of the request when handleRequest() returns (RequestExtension::noteProgress).
  enum class Progress {
    answered,         ///< the answer was sent, or the connection ends without an answer
    waitsForResume,   ///< goes on when CallResumer::resume() is called for the connection, or the client leaves
    waitsBriefly,     ///< the same, and the event is likely to come within milliseconds
    waitsForStorage,  ///< goes on when CallResumer::resumeAtReactor() is called, within milliseconds
    waitsForOutput,   ///< goes on when the sent parts of an open response have left, or the client has left
    waitsForInput     ///< goes on when further bytes of the body have come, or BodyReader::timeLeft() is over
  };

  /// Returns true if handleRequest() never blocks when ConnectedClient::mayBlock() returns false: the reactor thread
  /// may serve the request.
  virtual bool isQuick() const noexcept { return false; }
};

/// The functions that Poco's requests and responses lack. The request of the own transport implements the interface;
/// for a request of Poco's server, BlockingRequest does. One thread at a time.
class RequestExtension {
 public:
  virtual ~RequestExtension() = default;

  /// Returns the extension of a request, or null for a request of Poco's server.
  static RequestExtension* of(Poco::Net::HTTPServerRequest& request) noexcept;
  static const RequestExtension* of(const Poco::Net::HTTPServerRequest& request) noexcept {
    return of(const_cast<Poco::Net::HTTPServerRequest&>(request));
  }

  /// Returns the client of the request, for calls that wait.
  virtual ConnectedClient& client() const noexcept = 0;
  /// Notes that the request came with a valid key.
  virtual void noteKey() noexcept {}
  /// Sets the state of the request, `answered` without a call. After any other state handleRequest() is called again
  /// with the same arguments after the named event; meanwhile the connection has no thread, or, for `waitsBriefly`, may
  /// keep its thread.
  virtual void noteProgress(RequestHandler::Progress) noexcept {}

  /// Reads some bytes of the body into `to`, at most `size`. Returns their number; 0 if the body is complete,
  /// bodyResult() has failed, or isPaused(). A chunked body over `limit` bytes fails with status 413, before the bytes
  /// over the limit are read. The first call sends `100 Continue` to a client that waits for it.
  virtual std::size_t readBody(char* to, std::size_t size, std::uint64_t limit) = 0;
  /// Returns true if the last readBody() ended because the next bytes have not come.
  virtual bool isPaused() const noexcept { return false; }
  /// Returns the result of reading so far.
  virtual const Result<void, Fault>& bodyResult() const noexcept = 0;
  /// Prepares for an answer before the end of the body: the connection ends after the answer, unless the rest of the
  /// body has come and is dropped.
  virtual void discardBody() = 0;

  /// The state of the answer after a part of it was sent.
  enum class Sending {
    sent,   ///< all bytes have left
    waits,  ///< the rest leaves later
    broken  ///< the client has left, or was too slow
  };
  /// Sends the body with its length. With `constant` the body is that text instead, which outlives the response.
  virtual Sending sendText(std::string body, std::string_view constant) = 0;
  /// Sends a part of a body of unknown length; the first part with the head. All earlier parts have left. With
  /// `isLast` the body ends.
  virtual Sending sendPart(std::string part, bool isLast) = 0;
  /// Ends the connection after what was sent: the answer cannot be sent whole.
  virtual void abandon() noexcept = 0;
};

/// The open calls without an extension, which keep their threads. Any thread. Outlives every thread that may continue a
/// call.
class ThreadWaits final : public CallResumer {
 public:
  /// Returns the id of a further call.
  std::uint64_t begin();
  void end(std::uint64_t call) noexcept;
  /// Waits for a resumption of the call, at most for `atMost`. Returns true if the call was resumed since the last
  /// true.
  bool await(std::uint64_t call, std::chrono::milliseconds atMost);
  void resume(std::uint64_t call) noexcept override;
  /// Waits for the end of all calls, at most for `atMost`. Returns false if some are left.
  bool awaitNone(std::chrono::milliseconds atMost);

  std::atomic<bool> isClosing = false;  ///< each answer ends its connection

 private:
  Mutex mutex_;
  Condition changed_;
  std::uint64_t lastId_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, bool> isResumed_ JOBQ_GUARDED_BY(mutex_);
};

/// Any number of threads, one request each. Outlives the connections.
class RequestHandlerFactory : public Poco::Net::HTTPRequestHandlerFactory {
 public:
  /// Judges the head of `request` before a byte of the body is read and before `100 Continue`. Returns the handler of
  /// the request, owned by the caller; null if ConnectedClient::mayBlock() is false and the judgement would have to
  /// block: a thread that may block calls again. Throws std::bad_alloc only.
  RequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest& request) override = 0;

  /// Returns true if the reactor thread may call createRequestHandler(). The value is constant.
  virtual bool makesQuickly() const noexcept { return false; }

  /// Ends a turn of the reactor thread, behind some quick requests.
  virtual void endTurn() noexcept {}

  /// Returns the body of an answer that the transport gives by itself, such as 400 for a malformed head: JSON text with
  /// the sentence.
  virtual std::string errorBody(std::string_view sentence) const = 0;

  ThreadWaits& threadWaits() noexcept { return threadWaits_; }

 private:
  ThreadWaits threadWaits_;
};

}  // namespace jobq

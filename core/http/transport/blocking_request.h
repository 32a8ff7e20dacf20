// The extension of a request of Poco's own server: the request keeps its thread until the answer has left.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/base/connection_owner.h"
#include "core/base/result.h"
#include "core/base/suspended_call.h"
#include "core/http/transport/connected_client.h"
#include "core/http/transport/request_handler.h"
#include "core/http/transport/request_head.h"
#include "jobq/mutex.h"

namespace jobq {

/// Wakes threads that wait with their calls. Any thread. Outlives every thread that may continue a call.
class ThreadWaits final : public CallResumer {
 public:
  /// Returns the id of a further call.
  std::uint64_t begin();
  /// Ends the call.
  void end(std::uint64_t call) noexcept;
  /// Waits until the call is resumed, or for `atMost`. Returns true at once if the call was resumed since the last
  /// wait.
  bool await(std::uint64_t call, std::chrono::milliseconds atMost);
  void resume(std::uint64_t call) noexcept override;

 private:
  struct Wait {
    Condition resumed;
    bool isResumed = false;
  };

  Mutex mutex_;
  std::uint64_t lastId_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Wait> waits_ JOBQ_GUARDED_BY(mutex_);
};

/// One request with its answer. Blocks the thread for reads, writes and waits. The bounds of time are those of the own
/// transport: 20 s for a body or an answer, and 1 s more for each 8 KiB; a single read or write may take the timeout
/// of Poco's server longer. One thread.
class BlockingRequest final : public RequestExtension, public ConnectedClient {
 public:
  /// All arguments outlive the object.
  BlockingRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response, ThreadWaits& waits);
  /// Drops an unread body for a moment after the answer: a close with unread input would send a reset, and a client
  /// that still sends would lose the answer.
  ~BlockingRequest() override;
  BlockingRequest(const BlockingRequest&) = delete;
  BlockingRequest& operator=(const BlockingRequest&) = delete;

  /// Waits until the call is resumed or the client has left.
  void await();

  ConnectedClient& client() const noexcept override { return const_cast<BlockingRequest&>(*this); }
  void noteKey() noexcept override {}
  void noteProgress(RequestHandler::Progress) noexcept override {}
  std::size_t readBody(char* to, std::size_t size, std::uint64_t limit) override;
  bool isPaused() const noexcept override { return false; }
  const Result<void, Fault>& bodyResult() const noexcept override { return result_; }
  void discardBody() override;
  Sending sendText(std::string body, std::string_view constant) override;
  Sending sendPart(std::string part, bool isLast) override;
  void abandon() noexcept override;

  /// Returns a token that is never requested: no thread watches the socket.
  std::stop_token disconnected() override { return {}; }
  bool hasLeft() const noexcept override;
  /// Drops the owner: Poco's server does not tell the end of a connection.
  void setOwner(std::shared_ptr<const ConnectionOwner>) noexcept override {}
  SuspendedCall call() noexcept override { return {&waits_, id_}; }

 private:
  bool isBodyConsumed() const noexcept;
  bool isLate(std::chrono::steady_clock::time_point begin, std::uint64_t moved) const noexcept;
  Sending write(std::ostream& to, std::string_view text);
  void dropUnread() noexcept;

  Poco::Net::HTTPServerRequest& request_;
  Poco::Net::HTTPServerResponse& response_;
  ThreadWaits& waits_;
  const std::uint64_t id_;
  const int socket_;  // -1: unknown
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::uint64_t taken_ = 0;  // bytes of the body
  Result<void, Fault> result_;
  bool asksSocket_ = false;
  std::ostream* parts_ = nullptr;  // of an open answer
  bool isCut_ = false;             // the answer cannot be sent whole
};

/// Calls `serve` with the extension of the request. Without an extension, calls `serve` until the request is answered,
/// with a wait between two calls. `serve` returns the progress.
template <class Serve>
void serveExtended(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response, ThreadWaits& waits,
                   const Serve& serve) {
  if (RequestExtension* const extension = RequestExtension::of(request)) {
    extension->noteProgress(serve(*extension));
    return;
  }
  BlockingRequest blocking(request, response, waits);
  while (serve(blocking) != RequestHandler::Progress::answered) blocking.await();
}

}  // namespace jobq

// The extension of a request of Poco's own server: the request keeps its thread until the answer has left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/connection_owner.h"
#include "core/base/result.h"
#include "core/base/suspended_call.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/connected_client.h"
#include "core/http/transport/request_handler.h"
#include "core/http/transport/request_head.h"

namespace jobq {

/// One request with its answer. Blocks the thread for reads, writes and waits, within the times of TransferDeadline; a
/// single read or write may take the timeout of Poco's server longer. One thread.
class BlockingRequest final : public RequestExtension, public ConnectedClient {
 public:
  /// All arguments outlive the object.
  BlockingRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response, ThreadWaits& waits);
  /// Drops an unread body for a moment after the answer: a close with unread input would send a reset, and a client
  /// that still sends would lose the answer.
  ~BlockingRequest() override;
  BlockingRequest(BlockingRequest&&) = delete;

  /// Waits until the call is resumed or the client has left.
  void await();

  ConnectedClient& client() const noexcept override { return const_cast<BlockingRequest&>(*this); }
  std::size_t readBody(char* to, std::size_t size, std::uint64_t limit) override;
  const Result<void, Fault>& bodyResult() const noexcept override { return result_; }
  void discardBody() override;
  Sending sendText(std::string body, std::string_view constant) override;
  Sending sendPart(std::string part, bool isLast) override;
  void abandon() noexcept override;
  bool hasLeft() const noexcept override;
  void setOwner(std::shared_ptr<const ConnectionOwner> owner) noexcept override { owner_ = std::move(owner); }
  SuspendedCall call() noexcept override { return {&waits_, id_}; }

 private:
  bool isBodyConsumed() const noexcept;
  Sending write(std::ostream& to, std::string_view text);

  Poco::Net::HTTPServerRequest& request_;
  Poco::Net::HTTPServerResponse& response_;
  ThreadWaits& waits_;
  const std::uint64_t id_ = waits_.begin();
  const int socket_;  // -1: unknown
  Budget noSlots_{0};
  TransferDeadline deadline_{noSlots_};  // of the body
  std::uint64_t taken_ = 0;              // bytes of the body
  Result<void, Fault> result_;
  std::shared_ptr<const ConnectionOwner> owner_;
  bool asksSocket_ = false;
  std::ostream* parts_ = nullptr;  // of an open answer
};

/// Calls `serve` with the extension of the request. Without an extension, calls `serve` until the request is answered,
/// with a wait between two calls. `serve` returns the progress.
template <class Serve>
void serveExtended(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response, ThreadWaits& waits,
                   const Serve& serve) {
  if (auto* const extension = RequestExtension::of(request)) return extension->noteProgress(serve(*extension));
  BlockingRequest blocking(request, response, waits);
  while (serve(blocking) != RequestHandler::Progress::answered) blocking.await();
}

}  // namespace jobq

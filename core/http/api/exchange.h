// One request and its answer on the wire.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/http/api/api_request.h"
#include "core/http/api/body_file.h"
#include "core/http/api/body_memory.h"
#include "core/http/transport/request_handler.h"

namespace jobq {

/// Bodies and answers up to this size draw on no budget.
inline constexpr std::size_t kFreeBody = 1UL << 20;

/// Reads the body of one request and sends the answer. One thread. All arguments outlive the exchange.
class Exchange {
 public:
  /// `extension` is that of `request`, or stands in for it.
  Exchange(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response, RequestExtension& extension)
      : request_(request), response_(response), extension_(extension) {}

  /// Returns the head of the request.
  const Poco::Net::HTTPServerRequest& head() const noexcept { return request_; }
  RequestExtension& extension() const noexcept { return extension_; }

  /// Reads the body into `request.body`, at most `limit` bytes, drawing on `bodyMemory`. Returns the refusal if the
  /// body is too long, malformed, cut off or too slow, or if the budget has no room. Returns without a refusal when the
  /// body is complete, or isPaused(): the next call goes on behind the bytes read so far.
  std::optional<ApiResponse> readBody(ApiRequest& request, std::size_t limit, BodyMemory& bodyMemory);

  /// Returns true if the rest of the body has not come yet.
  bool isPaused() const noexcept { return extension_.isPaused(); }

  /// Sends the answer. A part may leave later (hasRest).
  void send(ApiResponse response);

  /// Sends a further part of an open answer, and ends the answer behind the last one. Nothing is left to send before.
  void sendPart(BodyPart part);
  /// Returns true if sent bytes of the answer have not left yet.
  bool hasRest() const noexcept { return sending_ == RequestExtension::Sending::waits; }
  /// Returns true if the client has left, or was too slow.
  bool isBroken() const noexcept { return sending_ == RequestExtension::Sending::broken; }

  /// Ends the connection: the answer cannot be sent whole.
  void abandon() noexcept { extension_.abandon(); }

 private:
  void sendFile(const BodyFile& file);

  Poco::Net::HTTPServerRequest& request_;
  Poco::Net::HTTPServerResponse& response_;
  RequestExtension& extension_;
  RequestExtension::Sending sending_ = RequestExtension::Sending::sent;
};

/// Returns the 413 for a route with a body limit of `limit` bytes, at least 1 KB. The sentence names the limit in whole
/// MB, or in whole KB below 1 MB.
ApiResponse tooLarge(std::string_view path, std::size_t limit);

/// Returns the values of all lines with the name as a list (RFC 9110, section 5.3).
std::string joinedLines(const Poco::Net::HTTPServerRequest& head, const std::string& name);

/// Returns the 415 for a body in a coding, or in a multipart form. JSON is read under any other content type.
std::optional<ApiResponse> unreadableForm(const Poco::Net::HTTPServerRequest& head, std::string_view path);

/// Returns the 503 for a used-up `server.bodyMemory`, or for the used-up quarter of an endpoint.
ApiResponse noBodyMemory(std::string_view path, const BodyMemory& memory);

}  // namespace jobq

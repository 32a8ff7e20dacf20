// One request and its reply on the wire, over Poco's request and response interfaces.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "core/http/api/api_request.h"
#include "core/http/api/body_memory.h"
#include "core/http/transport/body_file.h"

namespace Poco::Net {
class HTTPServerRequest;
class HTTPServerResponse;
}  // namespace Poco::Net

namespace jobq {

class ServerRequest;

/// Bodies and answers up to this size draw on no budget.
inline constexpr std::size_t kFreeBody = 1UL << 20;

/// One thread.
class Exchange {
 public:
  Exchange(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response);

  Caller& caller();

  /// Reads the whole body into the call, or says why not: too long, broken, cut, too slow, no memory for it.
  std::optional<ApiResponse> readBody(ApiRequest& call, std::size_t limit, BodyMemory& bodyMemory);

  /// Sends the reply.
  void send(const ApiResponse& reply);

  /// The connection is of no more use.
  void abandon() noexcept;

 private:
  void sendFile(const BodyFile& file);

  ServerRequest& request_;
  Poco::Net::HTTPServerResponse& response_;
};

/// 413, naming the limit.
ApiResponse tooLarge(std::string_view path, std::size_t limit);

/// 503: `server.bodyMemory`, or the endpoint's quarter of it, is used up.
ApiResponse noBodyMemory(std::string_view path);

}  // namespace jobq

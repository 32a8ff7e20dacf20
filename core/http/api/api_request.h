// The request and the answer of an API call as values, without a socket.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/auth/api_keys.h"
#include "core/endpoints/endpoint.h"
#include "core/http/api/answer_room.h"
#include "core/http/api/body_file.h"
#include "core/http/api/body_memory.h"
#include "core/http/transport/connected_client.h"
#include "core/http/transport/request_handler.h"
#include "core/limits/rate_limit_gate.h"

namespace jobq {

struct ApiRequest {
  std::string method;
  std::string path;  ///< decoded, without the query
  std::multimap<std::string, std::string> query;
  std::map<std::string, std::string> params;       ///< the route's {placeholders}
  std::optional<std::string> idempotencyKey;       ///< the header Idempotency-Key
  bool acceptsEvents = false;                      ///< the header Accept has text/event-stream
  std::string lastEventId;                         ///< the header Last-Event-ID of a request that accepts events
  std::string body;                                ///< moved from by the route that reads it
  BodyMemory::Reservation bodyMemory;              ///< of a large body, until the body is freed
  AnswerRoom room;                                 ///< memory for a large answer, until the answer is sent
  ApiKeyPtr key;                                   ///< of routes with a scope
  EndpointPtr endpoint;                            ///< of routes with {endpoint}
  RateLimitGate::Permit permit;                    ///< the place among concurrent calls, until the answer
  std::string warning;                             ///< value of the header Warning of a success; empty: none
  std::optional<RateLimitStatus> rateLimitStatus;  ///< values of the RateLimit-* headers
  ConnectedClient* client = nullptr;               ///< set when the route runs
};

struct ApiResponse {
  int status = 200;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::shared_ptr<const BodyFile> file{};  ///< the body, instead of `body`; released when sent
  std::string_view constant{};  ///< the body, instead of `body`: a text of the program, which no answer copies
  bool isOpen = false;          ///< `body` is the beginning; PendingCall::nextPart() gives the further parts
};

/// A part of the body of an open answer.
struct BodyPart {
  std::string bytes;  ///< may be empty
  bool isLast = false;
};

/// A call whose answer comes later: between two polls the call needs no thread. One thread at a time.
class PendingCall {
 public:
  virtual ~PendingCall() = default;

  /// Returns the answer, or no value while the call has to wait. The call `request.client->call()` is then resumed when
  /// the answer may exist. `request` is the request of the route. Throws as a route does.
  virtual std::optional<ApiResponse> poll(ApiRequest& request) = 0;

  /// Returns the next part of an open answer, or no value while the call has to wait, as poll() does. Throws
  /// std::bad_alloc only.
  virtual std::optional<BodyPart> nextPart(ApiRequest&) { return BodyPart{{}, true}; }

  /// Returns what the call waits for: RequestHandler::Progress::waitsForResume, `waitsBriefly` if most waits of this
  /// kind last for milliseconds, or `waitsForStorage`.
  virtual RequestHandler::Progress progress() const noexcept { return RequestHandler::Progress::waitsForResume; }
};

/// The first part of an open answer (ApiResponse::isOpen), and the call that gives the next parts.
struct OpenAnswer {
  ApiResponse begin;
  std::unique_ptr<PendingCall> rest;
};

/// The result of a route: the answer, which is not open, or the call that gives the answer later, or an open answer.
using RouteResult = std::variant<ApiResponse, std::unique_ptr<PendingCall>, OpenAnswer>;

}  // namespace jobq

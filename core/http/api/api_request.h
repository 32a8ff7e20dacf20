// A request and its reply as the routes see them: values, without a socket.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/auth/api_keys.h"
#include "core/endpoints/endpoint.h"
#include "core/http/api/body_memory.h"
#include "core/http/transport/body_file.h"
#include "core/http/transport/budget.h"
#include "core/limits/rate_limit_gate.h"

namespace jobq {

/// The client, as long as its call is served.
class Caller {
 public:
  virtual ~Caller() = default;
  /// Requested soon after the client has closed its side. The first question starts the watch.
  virtual std::stop_token gone() = 0;
};

struct ApiRequest {
  std::string method;
  std::string path;  ///< decoded, without the query
  std::multimap<std::string, std::string> query;
  std::map<std::string, std::string> params;  ///< the route's {placeholders}
  std::optional<std::string> idempotencyKey;  ///< the header Idempotency-Key
  std::string body;                           ///< whoever needs it takes it
  BodyMemory::Reservation bodyMemory;         ///< what a large body has drawn; given back when the body is gone
  Budget::Reservation answerMemory;           ///< what a large answer has drawn; given back when it was sent
  Budget* answers = nullptr;                  ///< what large answers draw on; set when the route runs
  ApiKeyPtr key;                              ///< of routes that demand one
  EndpointPtr endpoint;                       ///< of routes with {endpoint}
  RateLimitGate::Admission admission;         ///< its place among the calls at once, until it is answered
  std::optional<RateStanding> standing;       ///< what the RateLimit-* headers tell
  Caller* caller = nullptr;                   ///< set when the route runs
};

struct ApiResponse {
  int status = 200;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::shared_ptr<const BodyFile> file{};  ///< the body instead of `body`, let go of when it was sent
};

}  // namespace jobq

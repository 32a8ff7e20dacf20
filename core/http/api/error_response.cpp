#include "core/http/api/error_response.h"

#include <algorithm>

#include "jobq/json_writer.h"

namespace jobq {
namespace {

// Rounded up, so that a client that waits as long is not too early.
std::int64_t wholeSeconds(Millis duration) { return (duration.count() + 999) / 1'000; }

}  // namespace

ApiResponse errorResponse(std::string_view path, int status, std::string_view sentence) {
  const bool management = path == "/v1" || path.starts_with("/v1/");
  return {status, json::object([&](json::ObjectWriter& out) {
            if (management) out.member("message", sentence);
            if (!management) out.member("error", sentence);
          })};
}

ApiResponse badRequest(const ApiRequest& call, const Failure& failure) {
  return errorResponse(call.path, 400, failure.message());
}

ApiResponse unavailable(std::string_view path, std::string_view sentence) {
  ApiResponse reply = errorResponse(path, 503, sentence);
  reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

ApiResponse tooMany(std::string_view path, std::string_view sentence, Millis retryAfter) {
  ApiResponse reply = errorResponse(path, 429, sentence);
  reply.headers.emplace_back("Retry-After", std::to_string(std::max<std::int64_t>(wholeSeconds(retryAfter), 1)));
  return reply;
}

void addStanding(ApiResponse& reply, const RateLimitStatus& standing) {
  const RateLimit& limit = standing.limit;
  if (limit.requests == 0) return;
  const Millis until = standing.retryAfter > Millis(0) ? standing.retryAfter : limit.window;
  reply.headers.emplace_back("RateLimit-Limit", std::to_string(limit.requests));
  reply.headers.emplace_back("RateLimit-Remaining", std::to_string(standing.remaining));
  reply.headers.emplace_back("RateLimit-Reset", std::to_string(wholeSeconds(until)));
  reply.headers.emplace_back("RateLimit-Policy",
                             std::to_string(limit.requests) + ";w=" + std::to_string(wholeSeconds(limit.window)));
}

}  // namespace jobq

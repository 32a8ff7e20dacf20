#include "core/http/api/error_response.h"

#include <algorithm>

#include "core/base/words.h"
#include "core/config/server_config.h"
#include "core/limits/rate_limit_gate.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

// Rounded up, so that a client that waits as long is not too early.
std::int64_t wholeSeconds(Millis duration) { return (duration.count() + 999) / 1'000; }

// Returns true for /v2/{endpoint}/openai/… and the same path on the mount of SDKs.
bool isOpenAi(std::string_view path) {
  if (path.starts_with("/sdk/")) path.remove_prefix(4);
  if (!path.starts_with("/v2/")) return false;
  const std::size_t end = path.find('/', 4);
  return end != std::string_view::npos && path.substr(end).starts_with("/openai/");
}

// The types that OpenAI's clients know.
std::string_view openAiType(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

}  // namespace

std::string openAiError(int status, std::string_view sentence) {
  return json::object([&](json::ObjectWriter& out) {
    out.object("error", [&](json::ObjectWriter& error) {
      error.member("message", sentence);
      error.member("type", openAiType(status));
      error.raw("param", "null");
      error.raw("code", "null");
    });
  });
}

ApiResponse errorResponse(std::string_view path, int status, std::string_view sentence) {
  if (isOpenAi(path)) return {status, openAiError(status, sentence)};
  const bool management = path == "/v1" || path.starts_with("/v1/");
  return {status, json::object([&](json::ObjectWriter& out) {
            if (management) out.member("message", sentence);
            if (!management) out.member("error", sentence);
          })};
}

ApiResponse badRequest(const ApiRequest& request, const Failure& failure) {
  return errorResponse(request.path, 400, failure.message());
}

ApiResponse unauthorized(std::string_view path, std::string_view sentence) {
  ApiResponse response = errorResponse(path, 401, sentence);
  response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"jobq\"");
  return response;
}

ApiResponse unavailable(std::string_view path, std::string_view sentence) {
  ApiResponse response = errorResponse(path, 503, sentence);
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

ApiResponse noAnswerMemory(std::string_view path, std::string_view what) {
  return unavailable(path, limitReached("too many bytes of large answers are being sent", kAnswerMemory, "fixed") +
                               "; ask for " + std::string(what) + " again in a moment");
}

ApiResponse tooMany(std::string_view path, std::string_view sentence, Millis retryAfter) {
  ApiResponse response = errorResponse(path, 429, sentence);
  response.headers.emplace_back("Retry-After", std::to_string(std::max<std::int64_t>(wholeSeconds(retryAfter), 1)));
  return response;
}

namespace {

void addRateLimitHeaders(ApiResponse& response, const RateLimitStatus& status) {
  const RateLimit& limit = status.limit;
  if (limit.requests == 0) return;
  const Millis until = status.retryAfter > Millis(0) ? status.retryAfter : limit.window;
  response.headers.emplace_back("RateLimit-Limit", std::to_string(limit.requests));
  response.headers.emplace_back("RateLimit-Remaining", std::to_string(status.remaining));
  response.headers.emplace_back("RateLimit-Reset", std::to_string(wholeSeconds(until)));
  response.headers.emplace_back("RateLimit-Policy",
                                std::to_string(limit.requests) + ";w=" + std::to_string(wholeSeconds(limit.window)));
}

}  // namespace

void addRequestHeaders(ApiResponse& response, const ApiRequest& request) {
  if (request.rateLimitStatus) addRateLimitHeaders(response, *request.rateLimitStatus);
  if (response.status == 200 && !request.warning.empty()) response.headers.emplace_back("Warning", request.warning);
}

}  // namespace jobq

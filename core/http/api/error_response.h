// Refusals: one JSON sentence in the shape of the API of the path (core/decisions/http.md).
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/http/api/api_request.h"
#include "jobq/time.h"

namespace jobq {

/// Returns `{"message":…}` under /v1, `{"error":{"message":…,"type":…,"param":null,"code":null}}` under
/// `…/{endpoint}/openai/`, else `{"error":…}`; never with a key `id` or `status`.
ApiResponse errorResponse(std::string_view path, int status, std::string_view sentence);

/// Returns the error object of OpenAI's clients as JSON text. `status` is the HTTP status, which decides the type.
std::string openAiError(int status, std::string_view sentence);

/// Returns the 400 with the sentences of the failure. Pure; any thread. Throws std::bad_alloc only.
ApiResponse badRequest(const ApiRequest& request, const Failure& failure);

/// Returns 401 with WWW-Authenticate.
ApiResponse unauthorized(std::string_view path, std::string_view sentence);

/// Returns 503 with Retry-After.
ApiResponse unavailable(std::string_view path, std::string_view sentence);

/// Returns 503 for an answer without room in kAnswerMemory. `what` names the answer.
ApiResponse noAnswerMemory(std::string_view path, std::string_view what);

/// Returns 429 with Retry-After: `retryAfter` in whole seconds, at least 1.
ApiResponse tooMany(std::string_view path, std::string_view sentence, Millis retryAfter);

/// Adds the headers RateLimit-*: the limit, the rest of the limit, and the seconds until there is more; none if the
/// call has no limit. Adds the header Warning to a success if the request has a warning.
void addRequestHeaders(ApiResponse& response, const ApiRequest& request);

}  // namespace jobq

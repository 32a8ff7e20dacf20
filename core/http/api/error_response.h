// Answers that say no: one JSON sentence in the shape of the API that was asked (core/decisions/http.md).
#pragma once

#include <string>
#include <string_view>

#include "core/http/api/api_request.h"
#include "core/limits/rate_limit_gate.h"
#include "jobq/time.h"

namespace jobq {

/// `{"message":…}` under /v1, else `{"error":…}`; never a key `id` or `status`.
ApiResponse errorResponse(std::string_view path, int status, std::string_view sentence);

/// 503 with Retry-After.
ApiResponse unavailable(std::string_view path, std::string_view sentence);

/// 429 with Retry-After: whole seconds, at least one.
ApiResponse tooMany(std::string_view path, std::string_view sentence, Millis retryAfter);

/// The RateLimit-* headers: what is allowed, how much of it is left, and in how many seconds there is more.
void addStanding(ApiResponse& reply, const RateStanding& standing);

}  // namespace jobq

// Answers that say no: one JSON sentence in the shape of the API that was asked (core/decisions/http.md).
#pragma once

#include <string>
#include <string_view>

#include "core/limits/rate_limit_gate.h"
#include "core/http/call.h"
#include "jobq/time.h"

namespace jobq {

/// `{"message":…}` under /v1, else `{"error":…}`; never a key `id` or `status`.
Reply errorReply(std::string_view path, int status, std::string_view sentence);

/// 503 with Retry-After.
Reply unavailable(std::string_view path, std::string_view sentence);

/// 429 with Retry-After: whole seconds, at least one.
Reply tooMany(std::string_view path, std::string_view sentence, Millis retryAfter);

/// The RateLimit-* headers: what is allowed, how much of it is left, and in how many seconds there is more.
void addStanding(Reply& reply, const RateStanding& standing);

}  // namespace jobq

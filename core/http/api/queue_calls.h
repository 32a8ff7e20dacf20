// The calls of the queue API, one function each, and what several of them need. queue_routes.cpp has the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "core/base/bounded_integer.h"
#include "core/http/api/api_request.h"
#include "core/http/api/routes.h"
#include "core/http/transport/budget.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

// submit_calls.cpp
ApiResponse run(const QueueDeps& deps, ApiRequest& call);
ApiResponse runsync(const QueueDeps& deps, ApiRequest& call);

// job_calls.cpp
ApiResponse status(const QueueDeps& deps, ApiRequest& call);
ApiResponse statusSync(const QueueDeps& deps, ApiRequest& call);
ApiResponse cancel(const QueueDeps& deps, ApiRequest& call);
ApiResponse retry(const QueueDeps& deps, ApiRequest& call);

// stream_calls.cpp. The text's array of chunks, and the object that SDKs want.
ApiResponse streamArray(const QueueDeps& deps, ApiRequest& call);
ApiResponse streamObject(const QueueDeps& deps, ApiRequest& call);

// log_calls.cpp
ApiResponse logs(const QueueDeps& deps, ApiRequest& call);

// endpoint_calls.cpp
ApiResponse health(const QueueDeps& deps, ApiRequest& call);
ApiResponse requests(const QueueDeps& deps, ApiRequest& call);
ApiResponse purgeQueue(const QueueDeps& deps, ApiRequest& call);

/// Counts the call towards its rate limit: called once its parameters and its body are known to be good, before
/// anything is done. Returns the 429 when the rate is exceeded.
std::optional<ApiResponse> countUnderstood(ApiRequest& call);

/// 404: the job of the path.
ApiResponse noJob(const ApiRequest& call);

/// Returns the 400 for a query parameter that is there more than once: one of its values would be dropped unseen.
std::optional<ApiResponse> refuseTwice(const ApiRequest& call, const char* name);

/// A query parameter that is an integer, `fallback` when it is absent, or the 400 that names it and its range.
std::variant<std::int64_t, ApiResponse> readNumber(const ApiRequest& call, const char* name, const Range& range,
                                                   OutOfRange otherwise, std::int64_t fallback);

/// `wait`, in its range under the mount's rules.
std::variant<Millis, ApiResponse> readWait(const QueueDeps& deps, const ApiRequest& call, Millis fallback);

/// A place to wait in, taken for as long as the call lasts. Where all are taken the call does not wait: it answers the
/// present state at once.
struct WaitSlot {
  WaitSlot(const QueueDeps& deps, Millis asked) : wait(place.grow(deps.waiting, 1) ? asked : Millis(0)) {}
  Budget::Reservation place;
  const Millis wait;
};

/// The job, or 503 when too many large answers are being read already: a large answer is memory for as long as its
/// client takes to read it.
ApiResponse wholeResponse(const QueueDeps& deps, ApiRequest& call, const Job& job);

DisconnectSignal disconnectSignal(const ApiRequest& call);

}  // namespace jobq

// The calls of the queue API, one function each, and helpers shared by several calls. The table of routes is in
// core/http/api/queue/queue_routes.cpp. An HTTP thread runs a call, and the thread of a worker may
// answer a call that waits; StorageError passes through to the pipeline, which
// answers 503.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "core/base/bounded_integer.h"
#include "core/base/result.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/http/api/api_request.h"
#include "core/http/api/query_parameters.h"
#include "core/http/api/routes.h"
#include "core/http/transport/budget.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "core/jobs/output_room.h"
#include "core/model/job_json.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/time.h"

namespace jobq {

// Defined in submit_calls.cpp.
RouteResult run(const QueueDeps& deps, ApiRequest& request);
RouteResult runsync(const QueueDeps& deps, ApiRequest& request);

/// A job that may be submitted.
struct AcceptedSubmission {
  JobSpec job;
  std::optional<Idempotency> idempotency;
};
/// A new job, the first job of a repeated idempotency key, or a refusal.
using SubmissionResult = std::variant<AcceptedSubmission, Duplicate, ApiResponse>;
/// Reads, counts and admits the job of the body, which is moved from. `syncWait`, in milliseconds, is present if the
/// caller waits for the result.
SubmissionResult acceptSubmission(const QueueDeps& deps, ApiRequest& request, std::optional<Millis> syncWait);
/// Returns the 400 for an idempotency key that came with another body before.
ApiResponse keyConflict(const ApiRequest& request);

// Defined in openai_calls.cpp.
RouteResult openAi(const QueueDeps& deps, ApiRequest& request);

// Defined in job_calls.cpp.
RouteResult status(const QueueDeps& deps, ApiRequest& request);
RouteResult statusSync(const QueueDeps& deps, ApiRequest& request);
RouteResult cancel(const QueueDeps& deps, ApiRequest& request);
RouteResult retry(const QueueDeps& deps, ApiRequest& request);

// Defined in stream_calls.cpp: the array of chunks of the mount /v2, and the object that SDKs need on the mount
// /sdk/v2.
RouteResult streamArray(const QueueDeps& deps, ApiRequest& request);
RouteResult streamObject(const QueueDeps& deps, ApiRequest& request);

// Defined in log_calls.cpp.
RouteResult logs(const QueueDeps& deps, ApiRequest& request);

// Defined in list_calls.cpp.
RouteResult requests(const QueueDeps& deps, ApiRequest& request);
RouteResult listJobs(const QueueDeps& deps, ApiRequest& request);

// Defined in endpoint_calls.cpp.
RouteResult health(const QueueDeps& deps, ApiRequest& request);
RouteResult purgeQueue(const QueueDeps& deps, ApiRequest& request);

/// Counts the call towards its rate limit. To be called when parameters and body are known to be good, before the call
/// takes effect. Returns the 429 if the rate is exceeded.
std::optional<ApiResponse> countWellFormed(ApiRequest& request);

/// Returns the job named in the path.
JobKey jobOf(const ApiRequest& request);

/// Returns the 404 for the job named in the path.
ApiResponse noJob(const ApiRequest& request);

/// Returns the query parameter `wait` in milliseconds, within its range under the rules of the mount.
Result<Millis> readWait(const QueueDeps& deps, const ApiRequest& request, Millis fallback);

/// A place among the waiting calls (`server.waiting`), held for as long as the call lasts. If all places are taken the
/// wait is 0: the call answers with the present state at once.
struct WaitSlot {
  WaitSlot(const QueueDeps& deps, Millis asked) : wait(place.grow(deps.waiting, 1) ? asked : Millis(0)) {}
  Budget::Reservation place;
  const Millis wait;
};

/// Returns the job, which is not absent, or 503 if there was no room for its output: a large answer occupies memory for
/// as long as its client takes to read.
ApiResponse wholeResponse(ApiRequest& request, FoundJob found, JobFields more = {});

/// Returns the reader of an advice in the answer to the request.
AdviceReader readerOf(const ApiRequest& request);

/// Returns the caller of a request for a wait.
WaitingCaller waitingCaller(ApiRequest& request);
/// Polls the new call. Returns the answer if there is one already, else the call.
RouteResult begin(std::unique_ptr<PendingCall> call, ApiRequest& request);

}  // namespace jobq

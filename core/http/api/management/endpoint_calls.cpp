// Calls about an endpoint as a whole: /health, /requests, /purge-queue.
#include <algorithm>
#include <array>

#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/management/list_response.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/model/job_json.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

constexpr std::int64_t kPage = 50;
constexpr std::int64_t kLargestPage = 100;
constexpr std::array kStates{JobState::inQueue, JobState::inProgress, JobState::completed,
                             JobState::failed,  JobState::cancelled,  JobState::timedOut};

Result<JobFilter> readFilter(const ApiRequest& request) {
  JobFilter filter{request.endpoint->spec.id, {}};
  const auto status = request.query.find("status");
  if (status == request.query.end()) return filter;
  if (const auto good = checkOnce(request, "status"); !good) return good.failure();
  const auto named = std::find_if(kStates.begin(), kStates.end(),
                                  [&status](JobState state) { return nameOf(state) == status->second; });
  if (named == kStates.end()) {
    return invalid("status must be IN_QUEUE, IN_PROGRESS, COMPLETED, FAILED, CANCELLED or TIMED_OUT, not " +
                       clipped(status->second),
                   "status");
  }
  filter.state = *named;
  return filter;
}

void writeCounts(json::ObjectWriter& out, const EndpointCounts& jobs) {
  out.member("completed", jobs.completed);
  out.member("failed", jobs.failed);
  out.member("inProgress", jobs.inProgress);
  out.member("inQueue", jobs.inQueue);
  out.member("retried", jobs.retried);
}

void writeCounts(json::ObjectWriter& out, const WorkerCounts& workers) {
  out.member("idle", workers.idle);
  out.member("initializing", workers.initializing);
  out.member("ready", workers.ready);
  out.member("running", workers.running);
  out.member("throttled", workers.throttled);
  out.member("unhealthy", workers.unhealthy);
}

}  // namespace

RouteResult health(const QueueDeps& deps, ApiRequest& request) {
  if (const auto refusal = countWellFormed(request)) return *refusal;
  const EndpointCounts jobs = deps.jobs.counts(request.endpoint->spec.id);
  const WorkerCounts workers = deps.workers.counts(request.endpoint->spec.id);
  const auto advice = deps.workers.advice(*request.endpoint, readerOf(request));
  const OwedDeliveries owed = deps.jobs.owed(request.endpoint->spec.id);
  return ApiResponse{200, json::object([&](json::ObjectWriter& out) {
                       out.object("jobs", [&jobs](json::ObjectWriter& group) { writeCounts(group, jobs); });
                       out.object("webhooks", [&owed](json::ObjectWriter& group) {
                         group.member("owed", owed.count);
                         group.member("oldestMs", owed.oldestAge.count());
                       });
                       out.object("workers", [&workers](json::ObjectWriter& group) { writeCounts(group, workers); });
                       if (advice) out.member("advice", *advice);
                     })};
}

// Lists jobs newest first, as job objects without output (core/http/API.md, "/requests").
RouteResult requests(const QueueDeps& deps, ApiRequest& request) {
  const auto filter = readFilter(request);
  if (!filter) return badRequest(request, filter.failure());
  const auto offset = readNumber(request, "offset", {0, std::int64_t{1} << 53}, OutOfRange::refuse, 0);
  if (!offset) return badRequest(request, offset.failure());
  const auto limit = readNumber(request, "limit", {1, kLargestPage}, OutOfRange::refuse, kPage);
  if (!limit) return badRequest(request, limit.failure());
  const auto cursor = readNumber(request, "cursor", {1, std::int64_t{1} << 53}, OutOfRange::refuse, 0);
  if (!cursor) return badRequest(request, cursor.failure());
  if (const auto refusal = countWellFormed(request)) return *refusal;
  const PageWindow window{static_cast<std::size_t>(*offset), static_cast<std::size_t>(*limit),
                          static_cast<std::uint64_t>(*cursor)};
  const JobPage page = deps.jobs.list(*filter, window);
  ListResponse list(request, "requests");
  for (const Job& job : page.jobs) {
    if (!list.add(jobJson(job))) break;
  }
  return list.finish(json::object([&](json::ObjectWriter& out) {
    out.member("total", page.total);
    out.member("offset", window.offset);
    out.member("limit", window.limit);
    out.member("hasMore", page.next != 0);
    if (page.next != 0) out.member("cursor", page.next);
  }));
}

RouteResult purgeQueue(const QueueDeps& deps, ApiRequest& request) {
  if (const auto refusal = countWellFormed(request)) return *refusal;
  const std::size_t removed = deps.jobs.purge(request.endpoint->spec.id);
  return ApiResponse{200, json::object([removed](json::ObjectWriter& out) {
                       out.member("removed", removed);
                       out.member("status", "completed");
                     })};
}

}  // namespace jobq

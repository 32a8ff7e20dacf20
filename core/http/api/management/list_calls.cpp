// Lists of an endpoint's jobs, newest first, as job objects without output: /requests, and GET /v1/jobs.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

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
constexpr Range kAnyNumber{0, std::int64_t{1} << 53};
constexpr std::array kStates{JobState::inQueue, JobState::inProgress, JobState::completed,
                             JobState::failed,  JobState::cancelled,  JobState::timedOut};

Result<JobFilter> readState(const ApiRequest& request) {
  JobFilter filter{request.endpoint->spec.id};
  const auto status = readText(request, "status");
  if (!status) return status.failure();
  if (!request.query.contains("status")) return filter;
  const auto named =
      std::find_if(kStates.begin(), kStates.end(), [&status](JobState state) { return nameOf(state) == *status; });
  if (named == kStates.end()) {
    return invalid(
        "status must be IN_QUEUE, IN_PROGRESS, COMPLETED, FAILED, CANCELLED or TIMED_OUT, not " + clipped(*status),
        "status");
  }
  filter.state = *named;
  return filter;
}

Result<JobFilter> readFilter(const ApiRequest& request) {
  auto filter = readState(request);
  if (!filter) return filter;
  auto key = readText(request, "keyId");
  if (!key) return key.failure();
  auto prefix = readText(request, "id");
  if (!prefix) return prefix.failure();
  filter->apiKeyId = *std::move(key);
  filter->idPrefix = *std::move(prefix);
  return filter;
}

/// Reads `limit` and `cursor`.
Result<PageWindow> readWindow(const ApiRequest& request) {
  const auto limit = readNumber(request, "limit", {1, kLargestPage}, OutOfRange::refuse, kPage);
  if (!limit) return limit.failure();
  const auto cursor = readNumber(request, "cursor", {1, kAnyNumber.max}, OutOfRange::refuse, 0);
  if (!cursor) return cursor.failure();
  return PageWindow{0, static_cast<std::size_t>(*limit), static_cast<std::uint64_t>(*cursor)};
}

void addJobs(ListResponse& list, const JobPage& page) {
  for (const Job& job : page.jobs) {
    if (!list.add(jobJson(job, {.times = true}))) return;
  }
}

void writeNext(json::ObjectWriter& out, const JobPage& page) {
  out.member("hasMore", page.next != 0);
  if (page.next != 0) out.member("cursor", page.next);
}

}  // namespace

RouteResult requests(const QueueDeps& deps, ApiRequest& request) {
  const auto filter = readState(request);
  if (!filter) return badRequest(request, filter.failure());
  const auto offset = readNumber(request, "offset", kAnyNumber, OutOfRange::refuse, 0);
  if (!offset) return badRequest(request, offset.failure());
  auto window = readWindow(request);
  if (!window) return badRequest(request, window.failure());
  window->offset = static_cast<std::size_t>(*offset);
  if (const auto refusal = countWellFormed(request)) return *refusal;
  const JobPage page = deps.jobs.list(*filter, *window);
  ListResponse list(request, "requests");
  addJobs(list, page);
  return list.finish(json::object([&](json::ObjectWriter& out) {
    out.member("total", page.total);
    out.member("offset", window->offset);
    out.member("limit", window->limit);
    writeNext(out, page);
  }));
}

RouteResult listJobs(const QueueDeps& deps, ApiRequest& request) {
  if (!request.endpoint) {
    return errorResponse(request.path, 400, "endpoint is missing: name the endpoint of the jobs, as in ?endpoint=ID");
  }
  const auto filter = readFilter(request);
  if (!filter) return badRequest(request, filter.failure());
  const auto window = readWindow(request);
  if (!window) return badRequest(request, window.failure());
  if (const auto refusal = countWellFormed(request)) return *refusal;
  const JobPage page = deps.jobs.list(*filter, *window);
  ListResponse list(request, "jobs");
  addJobs(list, page);
  return list.finish(json::object([&page](json::ObjectWriter& out) { writeNext(out, page); }));
}

}  // namespace jobq

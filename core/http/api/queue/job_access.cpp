#include "core/http/api/queue/job_access.h"

#include "core/http/api/error_response.h"
#include "core/http/api/queue/queue_calls.h"

namespace jobq {
namespace {

bool hasOwnJob(const QueueDeps& deps, const ApiRequest& request) {
  NoOutputRoom none;
  const std::optional<Job> job = deps.jobs.find(jobOf(request), &none).job;
  return job && isOwnJob(*job, *request.key);
}

ApiResponse refuseReader(const ApiRequest& request) {
  return unauthorized(request.path,
                      "the API key may only read here: leave out ttl, send offset to /stream, or use a key with the "
                      "scope client");
}

}  // namespace

bool isOwnJob(const Job& job, const ApiKey& key) { return !key.id.empty() && job.apiKeyId == key.id; }

std::optional<ApiResponse> refuseJobCall(const QueueDeps& deps, const ApiRequest& request, bool isReading) {
  const ApiKey& key = *request.key;
  if (key.has(Scope::client) || (isReading && key.has(Scope::read))) return std::nullopt;
  if (key.has(Scope::submit) && hasOwnJob(deps, request)) return std::nullopt;
  return key.has(Scope::read) ? refuseReader(request) : noJob(request);
}

}  // namespace jobq

// Calls about an endpoint as a whole: /health, /purge-queue.

#include "core/http/api/management/endpoint_status.h"
#include "core/http/api/queue/queue_calls.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

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

void writeHealth(json::ObjectWriter& out, const EndpointStatus& health) {
  out.object("jobs", [&health](json::ObjectWriter& group) { writeCounts(group, health.jobs); });
  out.object("webhooks", [&health](json::ObjectWriter& group) {
    group.member("owed", health.owed.count);
    group.member("oldestMs", health.owed.oldestAge.count());
  });
  out.object("workers", [&health](json::ObjectWriter& group) { writeCounts(group, health.workers); });
  if (health.advice) out.member("advice", *health.advice);
}

RouteResult health(const QueueDeps& deps, ApiRequest& request) {
  if (const auto refusal = countWellFormed(request)) return *refusal;
  const EndpointId& id = request.endpoint->spec.id;
  const EndpointStatus health{.jobs = deps.jobs.counts(id),
                              .owed = deps.jobs.owed(id),
                              .workers = deps.workers.counts(id),
                              .advice = deps.workers.advice(*request.endpoint, readerOf(request))};
  return ApiResponse{200, json::object([&](json::ObjectWriter& out) { writeHealth(out, health); })};
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

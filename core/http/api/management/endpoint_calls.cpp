// Calls about an endpoint as a whole: /health, /purge-queue.

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

RouteResult purgeQueue(const QueueDeps& deps, ApiRequest& request) {
  if (const auto refusal = countWellFormed(request)) return *refusal;
  const std::size_t removed = deps.jobs.purge(request.endpoint->spec.id);
  return ApiResponse{200, json::object([removed](json::ObjectWriter& out) {
                       out.member("removed", removed);
                       out.member("status", "completed");
                     })};
}

}  // namespace jobq

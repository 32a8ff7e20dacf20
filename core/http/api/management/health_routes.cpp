// Route /v1/health: the health of all endpoints in one call (core/http/API.md, "Health of all endpoints").
#include <map>
#include <utility>

#include "core/http/api/management/endpoint_status.h"
#include "core/http/api/management/form_response.h"
#include "core/http/api/management/list_response.h"
#include "core/http/api/management/reader_rights.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/http/api/routes.h"
#include "jobq/storage.h"

namespace jobq {
namespace {

std::string healthJson(const ApiRequest& request, const HealthDeps& deps, const EndpointEntry& entry,
                       const EndpointCounts& jobs) {
  const EndpointId& id = entry.spec.id;
  const auto advice = entry.endpoint ? deps.workers.advice(*entry.endpoint, readerOf(request)) : std::nullopt;
  const EndpointStatus health{
      .jobs = jobs, .owed = deps.storage.outbox().owed(id), .workers = deps.workers.counts(id), .advice = advice};
  return json::object([&](json::ObjectWriter& out) {
    out.member("id", id);
    out.member("name", entry.spec.name);
    out.member("paused", entry.spec.paused);
    writeHealth(out, health);
  });
}

ApiResponse list(const HealthDeps& deps, ApiRequest& request) {
  const auto part = readListPart(request);
  if (!part) return failureResponse(request, part.failure());
  std::map<EndpointId, EndpointCounts> counts = deps.storage.jobs().allCounts();
  ListResponse response(request);
  for (const EndpointEntryPtr& entry : entriesFor(request, deps.endpoints, *part)) {
    if (!response.add(healthJson(request, deps, *entry, counts[entry->spec.id]))) break;
  }
  return response.finish();
}

}  // namespace

void addHealthRoute(Router& router, const HealthDeps& deps) {
  router.add(
      {{"GET"}, "/v1/health", (Scope::monitor | Scope::read).withBoundKeys(), 1024, false, [deps](ApiRequest& request) {
         return list(deps, request);
       }});
}

}  // namespace jobq

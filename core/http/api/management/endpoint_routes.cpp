// Routes under /v1/endpoints (core/http/API.md, "Endpoint API"): endpoints, their workers, and the progress of
// releases.
#include <optional>
#include <set>
#include <string>

#include "core/base/clock.h"
#include "core/base/words.h"
#include "core/endpoints/endpoint_service.h"
#include "core/endpoints/filter_pool.h"
#include "core/endpoints/runtime_meter.h"
#include "core/http/api/error_response.h"
#include "core/http/api/management/form_response.h"
#include "core/http/api/management/list_response.h"
#include "core/http/api/management/reader_rights.h"
#include "core/http/api/query_parameters.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/http/api/routes.h"
#include "core/jobs/submission.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

constexpr std::size_t kEndpointBodyLimit = 1UL << 20;

// Names of the parts that a response shows only on demand.
constexpr const char* kTemplatePart = "includeTemplate";
constexpr const char* kWorkersPart = "includeWorkers";
using Includes = std::set<std::string>;

Result<Includes> readIncludes(const ApiRequest& request) { return readFlags(request, {kTemplatePart, kWorkersPart}); }

ApiResponse noEndpoint(const ApiRequest& request) {
  return errorResponse(request.path, 404,
                       "there is no endpoint " + clipped(request.params.at("id")) + ": check the id");
}

// State of the release: `complete` if every worker has the newest version, `rolling` if some workers have an older
// version, `halted` with the reason if the newest version does not run.
// The reason may have the last line of a worker, and is for administrators.
void writeRelease(json::ObjectWriter& out, const ApiRequest& request, const EndpointEntry& entry,
                  const WorkerPoolView& workerPool) {
  const bool isFaulty = entry.endpoint && !entry.endpoint->runnable;
  const std::optional<std::string> fault = isFaulty ? entry.endpoint->runnable.failure().message() : workerPool.fault;
  const bool halted = isFaulty || workerPool.halted;
  out.member("version", entry.spec.version);
  out.member("state", halted ? "halted" : workerPool.rolling ? "rolling" : "complete");
  if (fault && request.key->isAdmin()) out.member("reason", *fault);
}

// Writes the worker's state, and the keys of a Pod object with a meaning for jobq (core/http/API.md, "Endpoint").
void writeWorker(json::ObjectWriter& out, const EndpointDeps& deps, const ApiRequest& request,
                 const EndpointEntry& entry, const WorkerView& worker) {
  std::map<std::string, std::string> env = worker.release->env;
  hideValues(request, env);
  out.member("id", worker.id);
  out.member("node", deps.node);
  out.member("desiredStatus", worker.state == "leaving" ? "EXITED" : "RUNNING");
  out.member("state", worker.state);
  if (!worker.reason.empty() && request.key->isAdmin()) out.member("reason", worker.reason);
  out.member("image", worker.release->image);
  out.member("env", env);
  out.member("lastStartedAt", toIso8601(worker.startedAt));
  out.member("slsVersion", worker.release->version);
  out.member("endpointId", entry.spec.id);
  out.member("templateId", worker.release->templateId);
}

// Writes the values in force where the record of the endpoint sets none. `endpoint` is the object serving jobs now.
void writeInForce(json::ObjectWriter& out, const EndpointDeps& deps, const EndpointSpec& spec,
                  const Endpoint& endpoint) {
  out.member("queuePolicy", spec.queuePolicy.empty() ? deps.queuePolicy : spec.queuePolicy);
  out.array("filters", [&endpoint](json::ArrayWriter& filters) {
    for (const FilterPool* filter : endpoint.filters) filters.element(filter->name());
  });
  out.member("maxStuck", endpoint.maxStuck());
  out.member("maxQueued", endpoint.maxQueued());
  out.object("retention", [&endpoint](json::ObjectWriter& retention) {
    retention.member("run", retentionFor(std::nullopt, endpoint).count());
    retention.member("runsync", retentionFor(kWaitDefault, endpoint).count());
    retention.member("failed", retentionOfFailures(endpoint).count());
  });
  out.object("webhookRetries", [retries = endpoint.webhookRetries()](json::ObjectWriter& inside) {
    inside.member("attempts", retries.attempts);
    inside.member("pause", retries.pause.count());
    inside.member("factor", retries.factor);
  });
}

std::string templateJson(const EndpointDeps& deps, const ApiRequest& request, Template form) {
  hideValues(request, form.env);
  const std::int64_t minutes = deps.runtimes.minutes(form.id);
  return toJson(std::move(form), minutes);
}

void writeEndpoint(json::ObjectWriter& out, const EndpointDeps& deps, const ApiRequest& request,
                   const EndpointEntry& entry, const Includes& includes) {
  const WorkerPoolView workerPool = deps.workers.view(entry.spec.id);
  EndpointSpec shown = entry.spec;
  hideValues(request, shown.env);
  writeMembers(out, shown, endpointFields(), false);
  if (entry.endpoint) {
    out.member("image", entry.endpoint->spec.image);
    out.object("inForce",
               [&](json::ObjectWriter& inForce) { writeInForce(inForce, deps, entry.spec, *entry.endpoint); });
  }
  out.object("release", [&](json::ObjectWriter& release) { writeRelease(release, request, entry, workerPool); });
  const auto advice = entry.endpoint ? deps.workers.advice(*entry.endpoint, readerOf(request)) : std::nullopt;
  if (advice) out.member("advice", *advice);
  if (includes.contains(kTemplatePart)) {
    const auto made = deps.registry.findTemplate(entry.spec.templateId);
    out.raw("template", made ? templateJson(deps, request, made->form) : "null");
  }
  if (includes.contains(kWorkersPart)) {
    out.array("workers", [&](json::ArrayWriter& workers) {
      for (const WorkerView& worker : workerPool.workers) {
        workers.object([&](json::ObjectWriter& inside) { writeWorker(inside, deps, request, entry, worker); });
      }
    });
  }
}

std::string toJson(const EndpointDeps& deps, const ApiRequest& request, const EndpointEntry& entry,
                   const Includes& includes) {
  return json::object([&](json::ObjectWriter& out) { writeEndpoint(out, deps, request, entry, includes); });
}

ApiResponse create(const EndpointDeps& deps, ApiRequest& request) {
  const auto result = deps.service.create(request.body);
  if (!result) return failureResponse(request, result.failure());
  return {200, toJson(deps, request, **result, {})};
}

ApiResponse list(const EndpointDeps& deps, ApiRequest& request) {
  const auto includes = readIncludes(request);
  if (!includes) return failureResponse(request, includes.failure());
  const auto part = readListPart(request);
  if (!part) return failureResponse(request, part.failure());
  ListResponse response(request);
  for (const EndpointEntryPtr& entry : entriesFor(request, deps.registry, *part)) {
    if (!response.add(toJson(deps, request, *entry, *includes))) break;
  }
  return response.finish();
}

ApiResponse find(const EndpointDeps& deps, ApiRequest& request) {
  const auto includes = readIncludes(request);
  if (!includes) return failureResponse(request, includes.failure());
  const auto entry = deps.registry.entry(request.params.at("id"));
  if (!entry || !request.key->isFor(entry->spec.id)) return noEndpoint(request);
  return {200, toJson(deps, request, *entry, *includes)};
}

ApiResponse update(const EndpointDeps& deps, ApiRequest& request) {
  const auto result = deps.service.update(request.params.at("id"), request.body);
  if (!result) return failureResponse(request, result.failure());
  return {200, toJson(deps, request, **result, {})};
}

ApiResponse remove(const EndpointDeps& deps, ApiRequest& request) {
  const auto result = deps.service.remove(request.params.at("id"));
  if (!result) return failureResponse(request, result.failure());
  return {204, ""};
}

ApiResponse pauseOrResume(const EndpointDeps& deps, const ApiRequest& request, bool paused) {
  const auto result = deps.service.pause(request.params.at("id"), paused);
  if (!result) return failureResponse(request, result.failure());
  return {200, toJson(deps, request, **result, {})};
}

ApiResponse pause(const EndpointDeps& deps, ApiRequest& request) { return pauseOrResume(deps, request, true); }
ApiResponse resume(const EndpointDeps& deps, ApiRequest& request) { return pauseOrResume(deps, request, false); }

}  // namespace

void addEndpointRoutes(Router& router, const EndpointDeps& deps) {
  const auto add = [&router, deps](const char* method, const char* path, const RouteAccess& access, bool needsBody,
                                   ApiResponse (*answer)(const EndpointDeps&, ApiRequest&)) {
    router.add({{method}, path, access, kEndpointBodyLimit, needsBody, [deps, answer](ApiRequest& request) {
                  return answer(deps, request);
                }});
  };
  const RouteAccess reading = RouteAccess(Scope::read).withBoundKeys();
  add("POST", "/v1/endpoints", Scope::admin, true, create);
  add("GET", "/v1/endpoints", reading, false, list);
  add("GET", "/v1/endpoints/{id}", reading, false, find);
  add("PATCH", "/v1/endpoints/{id}", Scope::admin, true, update);
  add("POST", "/v1/endpoints/{id}/update", Scope::admin, true, update);
  add("DELETE", "/v1/endpoints/{id}", Scope::admin, false, remove);
  add("POST", "/v1/endpoints/{id}/pause", Scope::admin, false, pause);
  add("POST", "/v1/endpoints/{id}/resume", Scope::admin, false, resume);
}

}  // namespace jobq

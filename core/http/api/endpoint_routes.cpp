// Routes under /v1/endpoints (core/http/API.md, "Endpoint API"): endpoints, their workers, and the progress of
// releases.
#include "core/base/clock.h"
#include "core/base/words.h"
#include "core/endpoints/endpoint_service.h"
#include "core/endpoints/filter_pool.h"
#include "core/endpoints/runtime_meter.h"
#include "core/http/api/error_response.h"
#include "core/http/api/form_response.h"
#include "core/http/api/list_response.h"
#include "core/http/api/routes.h"
#include "core/jobs/submission.h"

namespace jobq {
namespace {

constexpr std::size_t kEndpointBodyLimit = 1UL << 20;

struct Wanted {
  bool withTemplate = false;
  bool withWorkers = false;
  FieldFaults faults;
};

Wanted readWanted(const ApiRequest& call) {
  Wanted wanted;
  wanted.withTemplate = readFlag(call, "includeTemplate", wanted.faults);
  wanted.withWorkers = readFlag(call, "includeWorkers", wanted.faults);
  return wanted;
}

ApiResponse noEndpoint(const ApiRequest& call) {
  return errorResponse(call.path, 404, "there is no endpoint " + clipped(call.params.at("id")) + ": check the id");
}

// State of the release: `complete` if every worker has the newest version, `rolling` if some workers have an older
// version, `halted` with the reason if the newest version does not run.
std::string releaseJson(const EndpointEntry& entry, const WorkerPoolView& workerPool) {
  const bool isFaulty = entry.endpoint && !entry.endpoint->fault.empty();
  const std::string& fault = isFaulty ? entry.endpoint->fault : workerPool.fault;
  const bool halted = isFaulty || workerPool.halted;
  std::string out = "{\"version\":" + write(entry.spec.version);
  out += ",\"state\":" + write(std::string(halted ? "halted" : workerPool.rolling ? "rolling" : "complete"));
  if (!fault.empty()) out += ",\"reason\":" + write(fault);
  return out + "}";
}

// Writes the worker's state, and the keys of a Pod object with a meaning for jobq (core/http/API.md, "Endpoint").
std::string workerJson(const EndpointEntry& entry, const WorkerView& worker) {
  std::string out = "{\"id\":" + write(worker.id);
  out += ",\"desiredStatus\":" + write(std::string(worker.state == "leaving" ? "EXITED" : "RUNNING"));
  out += ",\"state\":" + write(std::string(worker.state));
  out += ",\"image\":" + write(worker.release->image);
  out += ",\"env\":" + write(worker.release->env);
  out += ",\"lastStartedAt\":" + write(toIso8601(worker.startedAt));
  out += ",\"slsVersion\":" + write(worker.release->version);
  out += ",\"endpointId\":" + write(entry.spec.id);
  out += ",\"templateId\":" + write(worker.release->templateId);
  return out + "}";
}

// Writes the values in force where the record of the endpoint sets none. `endpoint` is the object serving jobs now.
std::string inForceJson(const EndpointDeps& deps, const EndpointSpec& spec, const Endpoint& endpoint) {
  std::vector<std::string> filters;
  for (const FilterPool* filter : endpoint.filters) filters.push_back(filter->name());
  const Millis runsync = retentionFor(kWaitDefault, endpoint);
  return "{\"queuePolicy\":" + write(spec.queuePolicy.empty() ? deps.queuePolicy : spec.queuePolicy) +
         ",\"filters\":" + write(filters) + ",\"maxStuck\":" + write(endpoint.maxStuck()) +
         ",\"retention\":{\"run\":" + write(retentionFor(std::nullopt, endpoint).count()) +
         ",\"runsync\":" + write(runsync.count()) + "}}";
}

std::string toJson(const EndpointDeps& deps, const EndpointEntry& entry, const Wanted& wanted) {
  const WorkerPoolView workerPool = deps.workers.view(entry.spec.id);
  std::string out = writeForm(entry.spec, endpointFields(), false);
  out.pop_back();
  if (entry.endpoint) {
    out += ",\"image\":" + write(entry.endpoint->spec.image);
    out += ",\"inForce\":" + inForceJson(deps, entry.spec, *entry.endpoint);
  }
  out += ",\"release\":" + releaseJson(entry, workerPool);
  if (wanted.withTemplate) {
    const auto made = deps.registry.findTemplate(entry.spec.templateId);
    out += ",\"template\":" + (made ? toJson(made->form, deps.runtimes.minutes(made->form.id)) : std::string("null"));
  }
  if (wanted.withWorkers) {
    out += ",\"workers\":[";
    for (const WorkerView& worker : workerPool.workers)
      out += (out.back() == '[' ? "" : ",") + workerJson(entry, worker);
    out += "]";
  }
  return out + "}";
}

ApiResponse create(const EndpointDeps& deps, ApiRequest& call) {
  const auto result = deps.service.create(call.body);
  if (!result) return failureResponse(call, result.failure());
  return {200, toJson(deps, **result, {})};
}

ApiResponse list(const EndpointDeps& deps, ApiRequest& call) {
  const Wanted wanted = readWanted(call);
  if (!wanted.faults.empty()) return faultResponse(wanted.faults);
  ListResponse reply(call);
  for (const EndpointEntryPtr& entry : deps.registry.entries()) {
    if (!reply.add(toJson(deps, *entry, wanted))) break;
  }
  return reply.finish();
}

ApiResponse find(const EndpointDeps& deps, ApiRequest& call) {
  const Wanted wanted = readWanted(call);
  if (!wanted.faults.empty()) return faultResponse(wanted.faults);
  const auto entry = deps.registry.entry(call.params.at("id"));
  return entry ? ApiResponse{200, toJson(deps, *entry, wanted)} : noEndpoint(call);
}

ApiResponse update(const EndpointDeps& deps, ApiRequest& call) {
  const auto result = deps.service.update(call.params.at("id"), call.body);
  if (!result) return failureResponse(call, result.failure());
  return {200, toJson(deps, **result, {})};
}

ApiResponse remove(const EndpointDeps& deps, ApiRequest& call) {
  const auto result = deps.service.remove(call.params.at("id"));
  if (!result) return failureResponse(call, result.failure());
  return {204, ""};
}

ApiResponse pauseOrResume(const EndpointDeps& deps, const ApiRequest& call, bool paused) {
  const auto result = deps.service.pause(call.params.at("id"), paused);
  if (!result) return failureResponse(call, result.failure());
  return {200, toJson(deps, **result, {})};
}

ApiResponse pause(const EndpointDeps& deps, ApiRequest& call) { return pauseOrResume(deps, call, true); }
ApiResponse resume(const EndpointDeps& deps, ApiRequest& call) { return pauseOrResume(deps, call, false); }

}  // namespace

void addEndpointRoutes(Router& router, const EndpointDeps& deps) {
  const auto add = [&router, deps](const char* method, const char* path, bool needsBody,
                                   ApiResponse (*answer)(const EndpointDeps&, ApiRequest&)) {
    router.add({{method}, path, Scope::admin, kEndpointBodyLimit, needsBody, [deps, answer](ApiRequest& call) {
                  return answer(deps, call);
                }});
  };
  add("POST", "/v1/endpoints", true, create);
  add("GET", "/v1/endpoints", false, list);
  add("GET", "/v1/endpoints/{id}", false, find);
  add("PATCH", "/v1/endpoints/{id}", true, update);
  add("POST", "/v1/endpoints/{id}/update", true, update);
  add("DELETE", "/v1/endpoints/{id}", false, remove);
  add("POST", "/v1/endpoints/{id}/pause", false, pause);
  add("POST", "/v1/endpoints/{id}/resume", false, resume);
}

}  // namespace jobq

// Routes under /v1/templates (core/http/API.md, "Template API").
#include "core/base/words.h"
#include "core/endpoints/runtime_meter.h"
#include "core/endpoints/template_service.h"
#include "core/http/api/error_response.h"
#include "core/http/api/management/form_response.h"
#include "core/http/api/management/list_response.h"
#include "core/http/api/management/reader_rights.h"
#include "core/http/api/query_parameters.h"
#include "core/http/api/routes.h"

namespace jobq {
namespace {

constexpr std::size_t kTemplateBodyLimit = 1UL << 20;

struct TemplateRoutes {
  TemplateService& service;
  const EndpointRegistry& registry;
  const RuntimeMeter& runtimes;
};

std::string toJson(const TemplateRoutes& routes, const ApiRequest& request, Template form) {
  hideValues(request, form.env);
  const std::int64_t minutes = routes.runtimes.minutes(form.id);
  return toJson(std::move(form), minutes);
}

ApiResponse noTemplate(const ApiRequest& request) {
  return errorResponse(request.path, 404,
                       "there is no template " + clipped(request.params.at("id")) + ": check the id");
}

// jobq has one tenant, to whom every template belongs. The inclusion flags are therefore checked and change no answer
// (core/decisions/endpoints.md).
Result<void> checkInclusions(const ApiRequest& request) {
  const auto flags =
      readFlags(request, {"includeEndpointBoundTemplates", "includePublicTemplates", "includeRunpodTemplates"});
  if (!flags) return flags.failure();
  return {};
}

ApiResponse create(const TemplateRoutes& routes, ApiRequest& request) {
  const auto result = routes.service.create(request.body);
  if (!result) return failureResponse(request, result.failure());
  return {200, toJson(routes, request, *result)};
}

ApiResponse list(const TemplateRoutes& routes, ApiRequest& request) {
  if (const auto good = checkInclusions(request); !good) return failureResponse(request, good.failure());
  const auto part = readListPart(request);
  if (!part) return failureResponse(request, part.failure());
  ListResponse response(request);
  for (const TemplateEntryPtr& entry : routes.registry.templates(part->cursor, part->limit)) {
    if (!response.add(toJson(routes, request, entry->form))) break;
  }
  return response.finish();
}

ApiResponse find(const TemplateRoutes& routes, ApiRequest& request) {
  if (const auto good = checkInclusions(request); !good) return failureResponse(request, good.failure());
  const auto entry = routes.registry.findTemplate(request.params.at("id"));
  return entry ? ApiResponse{200, toJson(routes, request, entry->form)} : noTemplate(request);
}

ApiResponse update(const TemplateRoutes& routes, ApiRequest& request) {
  const auto result = routes.service.update(request.params.at("id"), request.body);
  if (!result) return failureResponse(request, result.failure());
  return {200, toJson(routes, request, *result)};
}

ApiResponse remove(const TemplateRoutes& routes, ApiRequest& request) {
  const auto result = routes.service.remove(request.params.at("id"));
  if (!result) return failureResponse(request, result.failure());
  return {204, ""};
}

}  // namespace

void addTemplateRoutes(Router& router, TemplateService& service, const EndpointRegistry& registry,
                       const RuntimeMeter& runtimes) {
  const TemplateRoutes routes{service, registry, runtimes};
  const auto add = [&router, routes](const char* method, const char* path, Scope scope, bool needsBody,
                                     ApiResponse (*answer)(const TemplateRoutes&, ApiRequest&)) {
    router.add({{method}, path, scope, kTemplateBodyLimit, needsBody, [routes, answer](ApiRequest& request) {
                  return answer(routes, request);
                }});
  };
  add("POST", "/v1/templates", Scope::admin, true, create);
  add("GET", "/v1/templates", Scope::read, false, list);
  add("GET", "/v1/templates/{id}", Scope::read, false, find);
  add("PATCH", "/v1/templates/{id}", Scope::admin, true, update);
  add("POST", "/v1/templates/{id}/update", Scope::admin, true, update);
  add("DELETE", "/v1/templates/{id}", Scope::admin, false, remove);
}

}  // namespace jobq

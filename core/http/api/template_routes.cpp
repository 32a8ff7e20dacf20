// Routes under /v1/templates (core/http/API.md, "Template API").
#include "core/base/words.h"
#include "core/endpoints/runtime_meter.h"
#include "core/endpoints/template_service.h"
#include "core/http/api/error_response.h"
#include "core/http/api/form_response.h"
#include "core/http/api/list_response.h"
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

std::string toJson(const TemplateRoutes& routes, const Template& form) {
  return toJson(form, routes.runtimes.minutes(form.id));
}

ApiResponse noTemplate(const ApiRequest& call) {
  return errorResponse(call.path, 404, "there is no template " + clipped(call.params.at("id")) + ": check the id");
}

// jobq has one tenant, to whom every template belongs. The inclusion flags are therefore checked and change no answer
// (core/decisions/endpoints.md).
Result<void> checkInclusions(const ApiRequest& call) {
  const auto flags =
      readFlags(call, {"includeEndpointBoundTemplates", "includePublicTemplates", "includeRunpodTemplates"});
  if (!flags) return flags.failure();
  return {};
}

ApiResponse create(const TemplateRoutes& routes, ApiRequest& call) {
  const auto result = routes.service.create(call.body);
  if (!result) return failureResponse(call, result.failure());
  return {200, toJson(routes, *result)};
}

ApiResponse list(const TemplateRoutes& routes, ApiRequest& call) {
  if (const auto good = checkInclusions(call); !good) return failureResponse(call, good.failure());
  ListResponse response(call);
  for (const TemplateEntryPtr& entry : routes.registry.templates()) {
    if (!response.add(toJson(routes, entry->form))) break;
  }
  return response.finish();
}

ApiResponse find(const TemplateRoutes& routes, ApiRequest& call) {
  if (const auto good = checkInclusions(call); !good) return failureResponse(call, good.failure());
  const auto entry = routes.registry.findTemplate(call.params.at("id"));
  return entry ? ApiResponse{200, toJson(routes, entry->form)} : noTemplate(call);
}

ApiResponse update(const TemplateRoutes& routes, ApiRequest& call) {
  const auto result = routes.service.update(call.params.at("id"), call.body);
  if (!result) return failureResponse(call, result.failure());
  return {200, toJson(routes, *result)};
}

ApiResponse remove(const TemplateRoutes& routes, ApiRequest& call) {
  const auto result = routes.service.remove(call.params.at("id"));
  if (!result) return failureResponse(call, result.failure());
  return {204, ""};
}

}  // namespace

void addTemplateRoutes(Router& router, TemplateService& service, const EndpointRegistry& registry,
                       const RuntimeMeter& runtimes) {
  const TemplateRoutes routes{service, registry, runtimes};
  const auto add = [&router, routes](const char* method, const char* path, bool needsBody,
                                     ApiResponse (*answer)(const TemplateRoutes&, ApiRequest&)) {
    router.add({{method}, path, Scope::admin, kTemplateBodyLimit, needsBody, [routes, answer](ApiRequest& call) {
                  return answer(routes, call);
                }});
  };
  add("POST", "/v1/templates", true, create);
  add("GET", "/v1/templates", false, list);
  add("GET", "/v1/templates/{id}", false, find);
  add("PATCH", "/v1/templates/{id}", true, update);
  add("POST", "/v1/templates/{id}/update", true, update);
  add("DELETE", "/v1/templates/{id}", false, remove);
}

}  // namespace jobq

// Routes without a key: health checks for load balancers and service managers, and the description of the API.
#include <memory>
#include <string>
#include <string_view>

#include "core/http/api/docs_page.h"
#include "core/http/api/error_response.h"
#include "core/http/api/openapi.h"
#include "core/http/api/readiness.h"
#include "core/http/api/routes.h"
#include "jobq/storage.h"

namespace jobq {
namespace {

constexpr const char* kAddresses =
    R"({"service":"jobq","docs":"/docs","openapi":"/openapi.json","queueApi":"/v2/{endpointId}",)"
    R"("sdkApi":"/sdk/v2/{endpointId}","managementApi":"/v1","alive":"/healthz","ready":"/readyz"})";

constexpr const char* kOnlyItself =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'";

// Callers without a key get these texts, and thousands of them may read slowly: no answer has a copy.
ApiResponse fixedText(std::string_view text) {
  ApiResponse response;
  response.constant = text;
  return response;
}

}  // namespace

void addProcessRoutes(Router& router, Storage& storage, Clock& clock, const UnreadyReasons& reasons) {
  const auto readiness = std::make_shared<Readiness>(storage, clock);
  router.add(
      {{"GET"}, "/openapi.json", Scope::none, 1024, false, [](const ApiRequest&) { return fixedText(openapiText()); }});
  router.add({{"GET"}, "/", Scope::none, 1024, false, [](const ApiRequest&) { return ApiResponse{200, kAddresses}; }});
  router.add(
      {{"GET"}, "/docs", Scope::none, 1024, false, [](const ApiRequest&) {
         ApiResponse response = fixedText(docsPage());
         response.headers = {{"Content-Type", "text/html; charset=utf-8"}, {"Content-Security-Policy", kOnlyItself}};
         return response;
       }});
  router.add({{"GET"}, "/healthz", Scope::none, 1024, false, [](const ApiRequest&) {
                return ApiResponse{200, R"({"status":"alive"})"};
              }});
  router.add({{"GET"}, "/readyz", Scope::none, 1024, false, [readiness, reasons](const ApiRequest& request) {
                if (reasons.draining) return unavailable(request.path, "the server is shutting down");
                if (reasons.isFenced) {
                  return unavailable(request.path, "this node could not renew its leases and runs no jobs");
                }
                if (reasons.isDrained) {
                  return unavailable(request.path, "this node drains: `jobqctl node resume` or a restart ends that");
                }
                readiness->check();
                return ApiResponse{200, R"({"status":"ready"})"};
              }});
}

}  // namespace jobq

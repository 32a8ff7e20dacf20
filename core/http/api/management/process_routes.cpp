// Routes without a key: health checks for load balancers and service managers, and the description of the API.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/http/api/docs_page.h"
#include "core/http/api/error_response.h"
#include "core/http/api/openapi.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/http/api/readiness.h"
#include "core/http/api/routes.h"
#include "core/http/transport/request_head.h"
#include "jobq/storage.h"

namespace jobq {
namespace {

constexpr const char* kAddresses =
    R"({"service":"jobq","docs":"/docs","openapi":"/openapi.json","queueApi":"/v2/{endpointId}",)"
    R"("sdkApi":"/sdk/v2/{endpointId}","managementApi":"/v1","alive":"/healthz","ready":"/readyz"})";

/// A call of /readyz. Throws the StorageError of the check.
class AwaitedReadiness final : public PendingCall {
 public:
  AwaitedReadiness(std::shared_ptr<Readiness> readiness, Budget& waiting, SuspendedCall call)
      : readiness_(std::move(readiness)), waiting_(waiting), question_{call} {}

  std::optional<ApiResponse> poll(ApiRequest& request) override {
    const auto result = readiness_->check(question_);
    if (!result) {
      const bool mayWait = !request.client->hasLeft() && (place_.amount() > 0 || place_.grow(waiting_, 1));
      return mayWait ? std::nullopt : std::optional(unavailable(request.path, "the storage has not answered yet"));
    }
    if (!*result) throw StorageError(result->failure());
    return ApiResponse{200, R"({"status":"ready"})"};
  }

 private:
  const std::shared_ptr<Readiness> readiness_;
  Budget& waiting_;
  Budget::Reservation place_;  // while the call waits
  Readiness::Question question_;
};

// Callers without a key get these texts, and thousands of them may read slowly: no answer has a copy.
ApiResponse fixedText(std::string_view text) {
  ApiResponse response;
  response.constant = text;
  return response;
}

}  // namespace

void addProcessRoutes(Router& router, Storage& storage, Clock& clock, const UnreadyReasons& reasons, Budget& waiting) {
  const auto readiness = std::make_shared<Readiness>(storage, clock);
  router.add(
      {{"GET"}, "/openapi.json", Scope::none, 1024, false, [](const ApiRequest&) { return fixedText(openapiText()); }});
  router.add({{"GET"}, "/", Scope::none, 1024, false, [](const ApiRequest&) { return ApiResponse{200, kAddresses}; }});
  router.add(
      {{"GET"}, "/docs", Scope::none, 1024, false, [](const ApiRequest&) {
         ApiResponse response = fixedText(docsPage());
         response.headers = {{"Content-Type", "text/html; charset=utf-8"}, {"Content-Security-Policy", docsPolicy()}};
         return response;
       }});
  Route alive{.methods = {"GET"}, .pattern = std::string(kProbePath), .scope = Scope::none};
  alive.bodyLimit = 1024;
  alive.run = [](const ApiRequest&) { return ApiResponse{200, R"({"status":"alive"})"}; };
  alive.isProbe = true;
  router.add(std::move(alive));
  router.add({{"GET"},
              "/readyz",
              Scope::none,
              1024,
              false,
              [readiness, reasons, &waiting](ApiRequest& request) -> RouteResult {
                if (reasons.draining) return unavailable(request.path, "the server is shutting down");
                if (reasons.isFenced) {
                  return unavailable(request.path, "this node could not renew its leases and runs no jobs");
                }
                if (reasons.isDrained) {
                  return unavailable(request.path, "this node drains: `jobqctl node resume` or a restart ends that");
                }
                const SuspendedCall call = request.client->call();
                return begin(std::make_unique<AwaitedReadiness>(readiness, waiting, call), request);
              }});
}

}  // namespace jobq

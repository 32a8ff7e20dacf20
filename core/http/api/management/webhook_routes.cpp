// Routes under /v1/webhooks: the deliveries with their tries, the replay of a delivery, and the signing secret
// (core/http/API.md, "Deliveries over REST"). Admins see whole URLs, including secrets in them.
#include "core/base/clock.h"
#include "core/base/repeated_call.h"
#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/management/list_response.h"
#include "core/http/api/query_parameters.h"
#include "core/http/api/routes.h"
#include "core/model/delivery_notifier.h"
#include "core/webhooks/webhook_secrets.h"
#include "jobq/json.h"
#include "jobq/json_writer.h"
#include "jobq/outbox_store.h"

namespace jobq {
namespace {

constexpr std::size_t kWebhookBodyLimit = 64UL << 10;  // bytes; the bodies of these routes are ignored
constexpr std::int64_t kListed = 100;
constexpr std::int64_t kMostListed = 1'000;

std::string_view nameOf(DeliveryState state) {
  switch (state) {
    case DeliveryState::owed: return "owed";
    case DeliveryState::delivered: return "delivered";
    case DeliveryState::abandoned: return "abandoned";
  }
  return "";
}

void writeAttempt(json::ObjectWriter& out, const DeliveryAttempt& attempt) {
  out.member("at", toIso8601(attempt.at));
  out.member("status", attempt.status);
  out.member("durationMs", attempt.duration.count());
  out.member("reason", attempt.reason.value_or(""));
  out.member("reply", attempt.reply);
}

void writeAttempts(json::ArrayWriter& out, const std::vector<DeliveryAttempt>& attempts) {
  for (const DeliveryAttempt& attempt : attempts) {
    out.object([&attempt](json::ObjectWriter& object) { writeAttempt(object, attempt); });
  }
}

std::string deliveryJson(const Delivery& delivery) {
  return json::object([&delivery](json::ObjectWriter& out) {
    out.member("id", delivery.id);
    out.member("jobId", delivery.job.id);
    out.member("endpointId", delivery.job.endpoint);
    out.member("state", nameOf(delivery.state));
    out.member("url", delivery.url);
    out.member("jobStatus", jobq::nameOf(delivery.job.state));
    if (delivery.state == DeliveryState::owed) out.member("dueAt", toIso8601(delivery.dueAt));
    out.array("attempts", [&delivery](json::ArrayWriter& attempts) { writeAttempts(attempts, delivery.attempts); });
  });
}

/// Reads `state`; no value if the parameter is absent.
Result<std::optional<DeliveryState>> readDeliveryState(const ApiRequest& request) {
  const auto text = readText(request, "state");
  if (!text) return text.failure();
  if (!request.query.contains("state")) return std::optional<DeliveryState>();
  for (const DeliveryState state : {DeliveryState::owed, DeliveryState::delivered, DeliveryState::abandoned}) {
    if (nameOf(state) == *text) return std::optional(state);
  }
  return invalid("state must be owed, delivered or abandoned, not " + clipped(*text), "state");
}

ApiResponse list(OutboxStore& outbox, ApiRequest& request) {
  const auto job = readText(request, "jobId");
  if (!job) return badRequest(request, job.failure());
  const auto endpoint = readText(request, "endpointId");
  if (!endpoint) return badRequest(request, endpoint.failure());
  const auto state = readDeliveryState(request);
  if (!state) return badRequest(request, state.failure());
  if (job->empty() && endpoint->empty() && !*state) {
    return errorResponse(request.path, 400,
                         "jobId, endpointId or state is missing: name a job, an endpoint or a state");
  }
  const auto limit = readNumber(request, "limit", {1, kMostListed}, OutOfRange::refuse, kListed);
  if (!limit) return badRequest(request, limit.failure());
  ListResponse response(request);
  const bool isFiltered = *state && !job->empty();  // the storage does not filter the few deliveries of a job
  const auto asked = static_cast<std::size_t>(isFiltered ? kMostListed : *limit);
  std::int64_t left = *limit;
  for (const Delivery& delivery : outbox.list(*endpoint, *job, asked, *state)) {
    if (isFiltered && (delivery.state != **state || left-- <= 0)) continue;
    if (!response.add(deliveryJson(delivery))) break;
  }
  return response.finish();
}

ApiResponse replay(const WebhookDeps& deps, const ApiRequest& request) {
  const std::string& id = request.params.at("id");
  if (!callRepeatedly([&] { return deps.outbox.replay(id); })) {
    return errorResponse(
        request.path, 404,
        "there is no webhook delivery " + clipped(id) + ": the id is wrong, or its record has expired");
  }
  deps.deliveries.notify();
  return {200, json::object([&id](json::ObjectWriter& out) {
            out.member("id", id);
            out.member("state", nameOf(DeliveryState::owed));
          })};
}

}  // namespace

void addWebhookRoutes(Router& router, const WebhookDeps& deps) {
  router.add({{"GET"}, "/v1/webhooks", Scope::admin, kWebhookBodyLimit, false, [deps](ApiRequest& request) {
                return list(deps.outbox, request);
              }});
  router.add(
      {{"POST"}, "/v1/webhooks/{id}/replay", Scope::admin, kWebhookBodyLimit, false, [deps](const ApiRequest& request) {
         return replay(deps, request);
       }});
  router.add({{"GET"}, "/v1/webhooks/secret", Scope::admin, kWebhookBodyLimit, false, [deps](const ApiRequest&) {
                return ApiResponse{200, json::object([&deps](json::ObjectWriter& out) {
                                     out.member("secret", deps.secrets.serverSecret());
                                   })};
              }});
}

}  // namespace jobq

#include "core/maintenance/outbox_cleaner.h"

#include <cstddef>
#include <string>

namespace jobq {
namespace {

constexpr std::size_t kAbandonedOfACall = 500;
constexpr Millis kNoAge{Millis(86'400'000) * 36'500};  // a century: no delivery is as old
constexpr int kCallsOfAStep = 20;                      // in a step, so that sweeps come between

}  // namespace

void OutboxCleaner::step() {
  std::map<EndpointId, AbandonedDeliveries> endpoints;
  const OwedBounds bounds{clock_.now() < agesFrom_ ? kNoAge : bounds_.maxAge, bounds_.maxCount};
  try {
    bool more = true;
    for (int i = 0; i < kCallsOfAStep && more && !stopping_; ++i) {
      AbandonResult result = outbox_.abandonOwed(bounds, kAbandonedOfACall);
      more = result.more;
      for (const AbandonedDeliveries& each : result.endpoints) {
        AbandonedDeliveries& sum = endpoints[each.endpoint];
        sum.tooOld += each.tooOld;
        sum.tooMany += each.tooMany;
      }
    }
  } catch (...) {
    report(endpoints);  // the storage reports an abandoned delivery only once
    throw;
  }
  report(endpoints);
}

void OutboxCleaner::report(const std::map<EndpointId, AbandonedDeliveries>& endpoints) {
  for (const auto& [endpoint, sum] : endpoints) {
    log_.write(LogLevel::warning, "webhook.abandoned",
               "endpoint " + endpoint + " gave up " + std::to_string(sum.tooOld) +
                   " webhooks that were owed for webhook.maxAge, and " + std::to_string(sum.tooMany) +
                   " beyond webhook.maxOwed; GET /v1/webhooks?endpointId=" + endpoint + " lists the last 1000");
  }
}

}  // namespace jobq

// The model's bounds on owed deliveries of an endpoint.
#include <algorithm>
#include <set>

#include "storage_model.h"

namespace jobq::model {
namespace {

bool isOf(const Owed& owed, std::string_view endpoint) {
  return owed.delivery.state == DeliveryState::owed && owed.delivery.job.endpoint == endpoint;
}

/// Returns true if the owed delivery is due and its last try was not delivered.
bool waits(const Delivery& delivery, Instant now) {
  return delivery.dueAt <= now && (delivery.tries == 0 || !delivery.attempts.back().reason.empty());
}

}  // namespace

OwedDeliveries StorageModel::owed(std::string_view endpoint) const {
  OwedDeliveries owed;
  for (const Owed& each : outbox_) {
    if (!isOf(each, endpoint)) continue;
    ++owed.count;
    owed.oldestAge = std::max(owed.oldestAge, now - each.owedAt);
  }
  return owed;
}

AbandonResult StorageModel::abandonOwed(const OwedBounds& bounds) {
  AbandonResult result;
  std::set<EndpointId> endpoints;
  for (const Owed& each : outbox_) endpoints.insert(each.delivery.job.endpoint);
  for (const EndpointId& endpoint : endpoints) {
    std::vector<Owed*> oldest;
    for (Owed& each : outbox_) {
      if (isOf(each, endpoint)) oldest.push_back(&each);
    }
    std::stable_sort(oldest.begin(), oldest.end(), [](auto* a, auto* b) { return a->owedAt < b->owedAt; });
    AbandonedDeliveries done{endpoint, 0, 0};
    for (Owed* each : oldest) {
      const bool isTooOld = each->owedAt + bounds.maxAge <= now;
      const bool areTooMany = oldest.size() - done.tooOld - done.tooMany > bounds.maxCount;
      if ((!isTooOld && !areTooMany) || !waits(each->delivery, now)) continue;
      ++(isTooOld ? done.tooOld : done.tooMany);
      each->delivery.state = DeliveryState::abandoned;
      each->settledAt = now;
      auto& attempts = each->delivery.attempts;
      attempts.push_back({now, 0, Millis(0), isTooOld ? tooOldReason(bounds) : tooManyReason(bounds), {}});
      if (attempts.size() > kMaxAttempts) attempts.erase(attempts.begin());
    }
    if (done.tooOld + done.tooMany > 0) result.endpoints.push_back(done);
  }
  return result;
}

}  // namespace jobq::model

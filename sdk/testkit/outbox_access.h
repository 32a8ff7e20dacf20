// Frequent steps of webhook tests on an outbox.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "jobq/outbox_store.h"
#include "jobq/time.h"

namespace jobq::testkit {

/// Claims the due deliveries of every host, up to `perHost` of each host, for `lease` milliseconds.
inline std::vector<Delivery> claimAllDue(OutboxStore& outbox, Millis lease, std::size_t perHost = 100) {
  std::vector<HostPlaces> places;
  for (std::string& host : outbox.dueHosts("", 1'000).hosts) places.push_back({std::move(host), perHost});
  return outbox.claimDue(places, lease);
}

/// Returns the last claim of the delivery, for reports about the delivery. Returns a claim that never existed for an
/// unknown delivery.
inline DeliveryClaim lastClaim(OutboxStore& outbox, const std::string& id) {
  for (const Delivery& delivery : outbox.list("", id.substr(0, id.rfind('.')), 1'000)) {
    if (delivery.id == id) return delivery.claim();
  }
  return {id, 0};
}

/// Records the next try of the delivery. Returns the answer of the outbox.
inline bool recordNext(OutboxStore& outbox, const DeliveryClaim& claim, DeliveryAttempt attempt) {
  std::uint32_t tries = 0;
  for (const Delivery& delivery : outbox.list("", claim.id.substr(0, claim.id.rfind('.')), 1'000)) {
    if (delivery.id == claim.id) tries = delivery.tries;
  }
  return outbox.recordAttempt(claim, tries + 1, std::move(attempt));
}

}  // namespace jobq::testkit

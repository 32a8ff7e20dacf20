// What tests of webhooks ask of an outbox again and again.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "jobq/outbox_store.h"
#include "jobq/time.h"

namespace jobq::testkit {

/// Claims the due deliveries of every host, up to `perHost` of each, for `lease`.
inline std::vector<Delivery> claimAllDue(OutboxStore& outbox, Millis lease, std::size_t perHost = 100) {
  std::vector<HostPlaces> places;
  for (std::string& host : outbox.dueHosts("", 1'000).hosts) places.push_back({std::move(host), perHost});
  return outbox.claimDue(places, lease);
}

/// Returns what a report of the last claim of the delivery carries; of an unknown delivery a claim that never was.
inline DeliveryClaim lastClaim(OutboxStore& outbox, const std::string& id) {
  for (const Delivery& delivery : outbox.list("", id.substr(0, id.rfind('.')), 1'000)) {
    if (delivery.id == id) return delivery.claim();
  }
  return {id, 0};
}

}  // namespace jobq::testkit

// The model of the outbox: owed deliveries, and their bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "jobq/outbox_store.h"
#include "jobq/time.h"
#include "model_state.h"

namespace jobq::model {

/// Each operation matches the operation of the same name of OutboxStore.
class OutboxModel {
 public:
  /// The state must outlive the model.
  explicit OutboxModel(ModelState& state) : state_(state) {}

  DueHosts dueHosts(std::string_view after, std::size_t max) const;
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease);
  bool finishDelivery(const DeliveryClaim& claim, DeliveryState state);
  bool reschedule(const DeliveryClaim& claim, Millis delay);
  bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt);
  std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit,
                             std::optional<DeliveryState> state = {}) const;
  bool replay(std::string_view id);
  OwedDeliveries owed(std::string_view endpoint) const;
  /// Abandons without a bound.
  AbandonResult abandonOwed(const OwedBounds& bounds);

 private:
  Owed* delivery(std::string_view id);
  /// Returns the delivery; null unless the claim is its last claim.
  Owed* claimed(const DeliveryClaim& claim);

  ModelState& state_;
};

}  // namespace jobq::model

// The way from the end of a job to the delivery of its webhook.
#pragma once

namespace jobq {

/// Receives word of new deliveries in the storage. Implemented by the WebhookDispatcher.
class DeliveryNotifier {
 public:
  virtual ~DeliveryNotifier() = default;

  /// Announces that a delivery may be owed. Any thread may call; the call is cheap, also in large numbers, and never
  /// waits for a delivery.
  virtual void notify() noexcept = 0;
};

}  // namespace jobq

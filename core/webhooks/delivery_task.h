// What one courier does with one delivery: the call, its record, and what comes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "core/base/clock.h"
#include "core/webhooks/receiver_table.h"
#include "core/webhooks/transports.h"
#include "core/webhooks/webhook_secrets.h"
#include "jobq/log.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"
#include "jobq/webhook_transport.h"

namespace jobq {

/// core/decisions/webhooks.md: 10 s for a call, three of them, 10 s apart.
inline constexpr Millis kCallTimeout{10'000};
inline constexpr std::uint32_t kMaxTries = 3;
inline constexpr Millis kRetryDelay{10'000};
/// For how long a delivery is claimed: a call, and time to record it in a storage that fails for a while.
inline constexpr Millis kDeliveryLease{60'000};
/// Of a receiver's answer and of a failure's reason: as many bytes are recorded.
inline constexpr std::size_t kReplyBytes = 1'024;
inline constexpr std::size_t kReasonBytes = 256;

/// One thread. A storage that fails is asked again until it does what it is told, the courier stops, or the lease has
/// ended: then the delivery is somebody else's. When a process dies after a call and before the delivery is settled,
/// the next one that claims it settles it by its record, without another call.
class DeliveryTask {
 public:
  struct Deps {
    OutboxStore& outbox;
    const Transports& transports;
    WebhookSecrets& secrets;
    Clock& clock;
    Log& log;
    const WallClock& wall;  ///< for what the receiver and admins read
  };
  /// `delivery` has just been claimed for kDeliveryLease.
  DeliveryTask(const Deps& deps, Delivery delivery, std::stop_token stop);

  /// Throws nothing. Returns when the delivery is due again, if this has put it off.
  std::optional<Instant> run() noexcept;

  /// Returns how the call of run() ended.
  CallEnd callEnd() const noexcept { return callEnd_; }

 private:
  struct Attempt {
    DeliveryAttempt record;
    bool last = false;  // no other will be better
  };

  std::optional<Instant> tryOnce();
  bool isDecided() const;
  std::optional<Attempt> call();
  std::optional<std::string> key(std::string& refusal);
  DeliveryResult deliver(WebhookTransport& transport, const WebhookCall& call) const;
  std::optional<Instant> conclude(bool last);
  void finishDelivery(DeliveryState state);
  void rescheduleNow();
  bool retryStorage(const char* doing, const std::function<void()>& operation);

  const Deps deps_;
  Delivery delivery_;
  const std::stop_token stop_;
  const Instant leaseEnds_;
  CallEnd callEnd_ = CallEnd::unknown;
};

}  // namespace jobq

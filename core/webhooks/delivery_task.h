// The work on a claimed delivery: the call, the record of the call, and the next step of the delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/webhooks/receiver_table.h"
#include "core/webhooks/transports.h"
#include "core/webhooks/webhook_secrets.h"
#include "jobq/log.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"
#include "jobq/webhook_transport.h"

namespace jobq {

/// A call has 10 s; a delivery has three calls, 10 s apart (core/decisions/webhooks.md).
inline constexpr Millis kCallTimeout{10'000};
inline constexpr std::uint32_t kMaxTries = 3;
inline constexpr Millis kRetryDelay{10'000};
/// The pause behind a call that a fault of this machine has kept from the receiver (jobq/machine_fault.h).
inline constexpr Millis kMachinePause{1'000};
/// Lease of a claimed delivery: time for a call, and for recording the call in a storage that fails for a while.
inline constexpr Millis kDeliveryLease{60'000};
/// Recorded bytes of a receiver's answer, and of the reason of a failure.
inline constexpr std::size_t kReplyBytes = 1'024;
inline constexpr std::size_t kReasonBytes = 256;

/// Used by one thread. A failing storage operation is tried again until success, until the stop, or until the end of
/// the lease; afterwards a newer claim may own the delivery. If a process dies after a call and before
/// finishDelivery(), the next claim finishes the delivery by the record, without a second call.
class DeliveryTask {
 public:
  /// The referenced objects outlive the task.
  struct Deps {
    OutboxStore& outbox;
    const Transports& transports;
    WebhookSecrets& secrets;
    Clock& clock;
    Log& log;
    const WallClock& wall;  ///< the time that receivers and admins read
  };
  /// Takes a delivery just claimed for kDeliveryLease.
  DeliveryTask(const Deps& deps, Delivery delivery, std::stop_token stop);

  /// Makes one attempt. Throws nothing. Returns the time of the next attempt if the task rescheduled the delivery. A
  /// fault of the machine is not an attempt: the task records no call and counts no try.
  std::optional<Instant> run() noexcept;

  /// Returns how the call of run() ended.
  CallEnd callEnd() const noexcept { return callEnd_; }

 private:
  struct Attempt {
    DeliveryAttempt record;
    bool last = false;  // another attempt could not succeed
  };

  std::optional<Instant> tryOnce();
  bool isDecided() const;
  std::optional<Attempt> call();
  Result<std::string> signingKey();
  DeliveryResult deliver(WebhookTransport& transport, const WebhookCall& call) const;
  std::optional<Instant> conclude(bool last);
  std::optional<Instant> postpone(Millis delay);
  std::optional<Instant> postponeUncounted(const std::exception& fault) noexcept;
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

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
#include "core/model/webhook_backoff.h"
#include "core/webhooks/delivery_work.h"
#include "core/webhooks/receiver_table.h"
#include "core/webhooks/transports.h"
#include "core/webhooks/webhook_secrets.h"
#include "jobq/log.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"
#include "jobq/webhook_transport.h"

namespace jobq {

/// The time of a call. WebhookBackoff has the number of the calls and the pauses between them.
inline constexpr Millis kCallTimeout{10'000};
/// The pause behind a call that a fault of this machine has kept from the receiver (jobq/machine_fault.h).
inline constexpr Millis kMachinePause{1'000};
/// Lease of a claimed delivery: time for a call, and for recording the call in a storage that fails for a while.
inline constexpr Millis kDeliveryLease{60'000};
/// Recorded bytes of a receiver's answer, and of the reason of a failure.
inline constexpr std::size_t kReplyBytes = 1'024;
inline constexpr std::size_t kReasonBytes = 256;

/// Used by one thread at a time. A failing storage operation is tried again until success, until the stop, or until the
/// end of the lease; afterwards a newer claim may own the delivery. If a process dies after a call and before
/// finishDelivery(), the next claim finishes the delivery by the record, without a second call.
class DeliveryTask final : public DeliveryWork, private DeliveryReceiver {
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

  /// Makes one attempt, or begins its call if the transport can wait for the answer without a thread. A fault of the
  /// machine is not an attempt: the task records no call and counts no try.
  std::optional<DeliveryEnd> begin(CallListener& listener) noexcept override;
  /// Records the attempt, and ends or postpones the delivery.
  DeliveryEnd conclude() noexcept override;

 private:
  enum class Step { over, callUnderWay };

  Step beginAttempt(CallListener& listener);
  bool isDecided() const;
  WebhookBackoff retries() const { return deps_.secrets.retriesOf(delivery_.job.endpoint); }
  Step beginCall(WebhookTransport& transport, CallListener& listener);
  Result<std::string> signingKey();
  void ended(DeliveryResult result) noexcept override;
  void failed(std::exception_ptr thrown) noexcept override;
  void noteEnd(DeliveryResult result, std::exception_ptr thrown) noexcept;
  void recordCall();
  void recordFailure(std::string reason, bool isLastTry);
  void record(DeliveryAttempt attempt, bool isLastTry);
  void endOrPostpone(bool isLastTry);
  void postpone(Millis delay);
  void putOff(const std::exception_ptr& thrown) noexcept;
  void postponeUncounted(const std::exception& fault) noexcept;
  void finishDelivery(DeliveryState state);
  void rescheduleNow();
  bool retryStorage(const char* doing, const std::function<void()>& operation);

  const Deps deps_;
  Delivery delivery_;
  const std::stop_token stop_;
  const Instant leaseEnds_;
  WebhookCall call_;
  CallListener* listener_ = nullptr;
  Instant began_{};                           // of the call
  Millis duration_{0};                        // of the call
  DeliveryResult result_ = DeliveryFailed{};  // of the call
  std::exception_ptr thrown_;                 // the exception of the transport instead of a result
  DeliveryEnd end_;
};

}  // namespace jobq

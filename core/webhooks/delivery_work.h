// The work on a delivery as the delivery pool sees it: one part, or two with a call between them that needs no thread.
#pragma once

#include <optional>

#include "core/webhooks/receiver_table.h"
#include "jobq/time.h"

namespace jobq {

/// Told that a call which waits without a thread has ended.
class CallListener {
 public:
  /// Called once for each such call. Any thread, also before DeliveryWork::begin() returns.
  virtual void callEnded() noexcept = 0;

 protected:
  ~CallListener() = default;
};

/// The end of the work on a delivery.
struct DeliveryEnd {
  CallEnd call = CallEnd::unknown;
  std::optional<Instant> retryAt;  ///< time of the next attempt, if the work arranged one
};

/// Threads of the pool call, one at a time.
class DeliveryWork {
 public:
  virtual ~DeliveryWork() = default;

  /// Does the whole work and returns its end; or begins a call that needs no thread, and returns no value. In this case
  /// `listener`, which outlives the work, is told of the end of the call, and conclude() follows.
  virtual std::optional<DeliveryEnd> begin(CallListener& listener) noexcept = 0;

  /// Does the work after such a call, and returns its end.
  virtual DeliveryEnd conclude() noexcept = 0;
};

}  // namespace jobq

// Abandons webhooks owed for too long, and the oldest webhooks of an endpoint beyond its bound. A dead receiver must
// not fill the disk.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>

#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"

namespace jobq {

/// One thread. Every node may run a cleaner, also at the same time: each call of the storage is atomic, and an
/// interrupted step continues later. No end of a job waits for a cleaner.
class OutboxCleaner {
 public:
  /// `outbox`, `clock` and `log` outlive the cleaner. The bound of age holds from the construction plus one hour on, or
  /// plus bounds.maxAge if that is shorter: webhooks that became old while no server ran have that time to be
  /// delivered.
  OutboxCleaner(OutboxStore& outbox, const OwedBounds& bounds, Clock& clock, Log& log)
      : outbox_(outbox),
        bounds_(bounds),
        clock_(clock),
        agesFrom_(clock.now() + std::min(bounds.maxAge, kGrace)),
        log_(log) {}

  static constexpr Millis kGrace{3'600'000};

  /// Abandons at most 10,000 deliveries beyond the bounds; the next step continues. Logs a warning for each endpoint
  /// with abandoned deliveries. Throws StorageError, after the warnings for the deliveries abandoned before the
  /// failure.
  void step();

  /// Ends a running step after its present call of the storage, for a shutdown; further steps do nothing. Any thread.
  void stop() noexcept { stopping_ = true; }

 private:
  void report(const std::map<EndpointId, AbandonedDeliveries>& endpoints);

  OutboxStore& outbox_;
  const OwedBounds bounds_;
  Clock& clock_;
  const Instant agesFrom_;
  Log& log_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace jobq

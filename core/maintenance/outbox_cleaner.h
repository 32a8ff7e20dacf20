// Abandons webhooks owed for too long, and the oldest webhooks of an endpoint beyond its bound. A dead receiver must
// not fill the disk.
#pragma once

#include <map>

#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/outbox_store.h"

namespace jobq {

/// One thread. Every node may run a cleaner, also at the same time: each call of the storage is atomic, and an
/// interrupted step continues later. No end of a job waits for a cleaner.
class OutboxCleaner {
 public:
  /// `outbox` and `log` outlive the cleaner.
  OutboxCleaner(OutboxStore& outbox, const OwedBounds& bounds, Log& log)
      : outbox_(outbox), bounds_(bounds), log_(log) {}

  /// Abandons at most 10,000 deliveries beyond the bounds; the next step continues. Logs a warning for each endpoint
  /// with abandoned deliveries. Throws StorageError, after the warnings for the deliveries abandoned before the
  /// failure.
  void step();

 private:
  void report(const std::map<EndpointId, AbandonedDeliveries>& endpoints);

  OutboxStore& outbox_;
  const OwedBounds bounds_;
  Log& log_;
};

}  // namespace jobq

// Gives up webhooks that are owed for too long, and the oldest of an endpoint that owes too many: a receiver that is
// gone must not fill the disk.
#pragma once

#include <map>

#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/outbox_store.h"

namespace jobq {

/// One thread. Any node may run one, several at once too: each call of the storage is whole, and a step that is cut off
/// goes on later. A job's end never waits for it.
class OutboxCleaner {
 public:
  /// `outbox` and `log` outlive it.
  OutboxCleaner(OutboxStore& outbox, const OwedBounds& bounds, Log& log)
      : outbox_(outbox), bounds_(bounds), log_(log) {}

  /// Abandons what is beyond the bounds, 10,000 deliveries at most; the rest is the next step's. Writes a warning for
  /// each endpoint of which some were abandoned. StorageError passes through.
  void step();

 private:
  void report(const std::map<EndpointId, AbandonedDeliveries>& endpoints);

  OutboxStore& outbox_;
  const OwedBounds bounds_;
  Log& log_;
};

}  // namespace jobq

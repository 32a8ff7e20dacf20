// Changes of deliveries inside a transaction, shared by several operations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jobq/job.h"
#include "jobq/outbox_store.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// Records a call made now in the record of the delivery with the row `num`. The record keeps the last kMaxAttempts
/// calls.
void addAttempt(Step& step, std::int64_t num, const DeliveryAttempt& attempt);

/// An ended delivery.
struct SettledRow {
  std::int64_t num = 0;
  EndpointId endpoint;
};

/// Deletes a settled delivery whose row is locked, with its parts.
void dropDelivery(Step& step, const SettledRow& row);

/// Deletes settled deliveries of the endpoint beyond kMaxDeliveriesPerEndpoint, the earliest settled first, at most
/// `max`. The cost does not grow with the number of kept deliveries.
void dropOldest(Step& step, const EndpointId& endpoint, std::size_t max);

}  // namespace jobq::mysql

// Changes of deliveries inside the writer's transaction, shared by several operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "jobq/outbox_store.h"
#include "writes/step.h"

namespace jobq::sqlite {

/// Records a call made now in the record of the delivery with the row `num`. The record keeps the last kMaxAttempts
/// calls.
void addAttempt(Step& step, std::int64_t num, const DeliveryAttempt& attempt);

/// Deletes settled deliveries of the endpoint beyond kMaxDeliveriesPerEndpoint, the earliest settled first, at most
/// `max`. The cost does not grow with the number of kept deliveries.
void dropOldest(Step& step, std::string_view endpoint, std::size_t max);

}  // namespace jobq::sqlite

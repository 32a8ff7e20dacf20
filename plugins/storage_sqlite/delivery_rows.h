// Changes of deliveries inside the writer's transaction, shared by several operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "jobq/outbox_store.h"
#include "writer.h"

namespace jobq::sqlite {

/// Adds an attempt of this moment to the record of the delivery. The record keeps the last kMaxAttempts attempts.
void addAttempt(Step& step, std::int64_t num, const DeliveryAttempt& attempt);

/// Deletes settled deliveries of the endpoint beyond kMaxDeliveriesPerEndpoint, in the order of settling, at most
/// `max`. The cost does not grow with the number of kept deliveries.
void dropOldest(Step& step, std::string_view endpoint, std::size_t max);

}  // namespace jobq::sqlite

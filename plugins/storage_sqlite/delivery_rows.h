// What several verbs do to a delivery inside the writer's transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "jobq/outbox_store.h"
#include "writer.h"

namespace jobq::sqlite {

/// Adds an attempt of this moment to the delivery's record, which keeps its last kMaxAttempts.
void addAttempt(Step& step, std::int64_t num, const DeliveryAttempt& attempt);

/// Deletes settled deliveries of the endpoint beyond kMaxDeliveriesPerEndpoint, those that were settled first, at most
/// `max` of them. The cost does not grow with the number of deliveries that are kept.
void dropOldest(Step& step, std::string_view endpoint, std::size_t max);

}  // namespace jobq::sqlite

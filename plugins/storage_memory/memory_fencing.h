// Fencing: a report of a former attempt or a former claim changes nothing.
#pragma once

#include "jobq/job.h"
#include "jobq/outbox_store.h"
#include "memory_deliveries.h"
#include "memory_rows.h"

namespace jobq::memory {

/// Returns whether the lease names the present attempt of the job. Called under State::mutex.
bool isCurrentAttempt(const Row& row, const LeaseRef& lease);

/// Returns whether the claim is the last claim of the delivery. Called under State::mutex.
bool isLastClaim(const DeliveryRow& row, const DeliveryClaim& claim);

}  // namespace jobq::memory

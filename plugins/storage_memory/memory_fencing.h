// Fencing: a report of an attempt or a claim that is over changes nothing.
#pragma once

#include "jobq/job.h"
#include "jobq/outbox_store.h"
#include "memory_deliveries.h"
#include "memory_rows.h"

namespace jobq::memory {

/// Returns whether the lease names the attempt that the job is in now. Called under State::mutex.
bool isCurrentAttempt(const Row& row, const LeaseRef& lease);

/// Returns whether the claim is the delivery's last one. Called under State::mutex.
bool isLastClaim(const DeliveryRow& row, const DeliveryClaim& claim);

}  // namespace jobq::memory

// Replaces plugins/storage_memory/memory_fencing.cpp: a report of any claim of a delivery is accepted.
#include "memory_fencing.h"

namespace jobq::memory {

bool isCurrentAttempt(const Row& row, const LeaseRef& lease) { return row.attempt == lease.attempt; }

bool isLastClaim(const DeliveryRow&, const DeliveryClaim&) { return true; }

}  // namespace jobq::memory

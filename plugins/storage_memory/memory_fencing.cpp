#include "memory_fencing.h"

namespace jobq::memory {

bool isCurrentAttempt(const Row& row, const LeaseRef& lease) { return row.attempt == lease.attempt; }

bool isLastClaim(const DeliveryRow& row, const DeliveryClaim& claim) { return row.claims == claim.number; }

}  // namespace jobq::memory

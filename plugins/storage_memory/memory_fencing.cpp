#include "memory_fencing.h"

namespace jobq::memory {

bool isCurrentAttempt(const Row& row, const LeaseRef& lease) { return row.attempt == lease.attempt; }

}  // namespace jobq::memory

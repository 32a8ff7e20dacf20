// Fencing: a report of an attempt that is over changes nothing.
#pragma once

#include "jobq/job.h"
#include "memory_rows.h"

namespace jobq::memory {

/// Returns whether the lease names the attempt that the job is in now. Called under State::mutex.
bool isCurrentAttempt(const Row& row, const LeaseRef& lease);

}  // namespace jobq::memory

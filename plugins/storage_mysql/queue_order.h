// The order of a queue: the state of the group shown to a queue policy, and the rank returned by the policy.
#pragma once

#include <cstdint>

#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// Calls the policy for the rank of the job inside the step, and stores the rank as the last rank of the group. The row
/// of the group stays locked until the end of the transaction. The lowest queued rank may be a moment old.
std::int64_t rankOf(Step& step, const JobSpec& job, const QueuePolicy& policy);

}  // namespace jobq::mysql

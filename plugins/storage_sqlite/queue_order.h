// The place in line: what a queue policy is told about the others, and the rank that it answers with.
#pragma once

#include <cstdint>

#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "writer.h"

namespace jobq::sqlite {

/// Asks the policy for the job's rank inside the step, and remembers it as its group's last.
std::int64_t rankOf(Step& step, const JobSpec& job, const QueuePolicy& policy);

}  // namespace jobq::sqlite

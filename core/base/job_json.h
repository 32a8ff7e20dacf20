// The job response object of api.md, with the handler's output in its original bytes. Pure; here because the answers of
// the queue API and the bodies of webhooks are one and the same object.
#pragma once

#include <string>

#include "jobq/job.h"

namespace jobq {

/// `{"id","status"}`.
std::string briefJob(const JobId& id, JobState state);

/// The `/status` object. delayTime from IN_PROGRESS on, executionTime and workerId on terminal answers, retries only
/// above 0; never input, webhook or s3Config.
std::string wholeJob(const Job& job);

}  // namespace jobq

// The job response object (core/http/API.md, "Job object"), with the handler's output in its original bytes. Pure
// functions in this folder, because answers of the queue API and bodies of webhooks contain the same object.
#pragma once

#include <cstddef>
#include <string>

#include "jobq/job.h"
#include "jobq/json_writer.h"

namespace jobq {

/// Returns `{"id","status"}`.
std::string briefJob(const JobId& id, JobState state);

/// Writes the members of the `/status` object: delayTime from IN_PROGRESS on, executionTime and workerId for terminal
/// states, retries only above 0; never input, webhook or s3Config.
void writeJob(json::ObjectWriter& out, const Job& job);

/// Returns the memory to reserve for the `/status` object, in bytes.
std::size_t roomFor(const Job& job);

/// Returns the `/status` object, as writeJob() writes it.
std::string wholeJob(const Job& job);

}  // namespace jobq

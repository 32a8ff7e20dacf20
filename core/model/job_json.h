// The job response object (core/http/API.md, "Job object"), with the handler's output in its original bytes. Pure
// functions in this folder, because answers of the queue API and bodies of webhooks contain the same object.
#pragma once

#include <cstddef>
#include <string>

#include "jobq/job.h"
#include "jobq/json_writer.h"

namespace jobq {

/// Returns `{"id","status"}`.
std::string jobSummaryJson(const JobId& id, JobState state);

/// Members of a job object beside those of plain `/status`.
struct JobFields {
  bool times = false;  ///< createdAt, startedAt, endedAt and keyId
  bool input = false;  ///< input, if the job has been read with the input
};

/// Writes the members of the `/status` object: delayTime and workerId from IN_PROGRESS on, executionTime and error in
/// terminal states, retries above 0, and output if there is one, while IN_PROGRESS the last progress; and the members
/// of `more`. Never writes webhook or s3Config.
void writeJob(json::ObjectWriter& out, const Job& job, JobFields more = {});

/// Returns the usual size of the `/status` object in bytes, to reserve memory.
std::size_t jobJsonSize(const Job& job);

/// Returns the `/status` object, as writeJob() writes it.
std::string jobJson(const Job& job, JobFields more = {});

}  // namespace jobq

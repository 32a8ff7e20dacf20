// A run of a handler, with the bounds on its output and its reports, for the server and for the program jobq-worker.
#pragma once

#include <cstddef>
#include <string_view>

#include "jobq/job.h"
#include "jobq/job_handler.h"

namespace jobq {

inline constexpr std::size_t kLongestLine = 8'192;  ///< bytes of a line in a job's log of at most 1,000 lines

/// Runs the handler on the calling thread. Every exception of the handler becomes an outcome of the job, and so does an
/// output that is too long or is not JSON.
Outcome runHandler(JobHandler& handler, std::string_view input, JobContext& context);

/// Throws JobFailed if `json` is not JSON or is longer than kMaxProgressBytes.
void checkProgress(std::string_view json);

/// Throws JobFailed if a chunk is longer than a remote worker can send.
void checkChunk(std::string_view chunk);

}  // namespace jobq

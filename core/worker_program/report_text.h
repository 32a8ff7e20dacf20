// Bodies of the reports of a worker about a job.
#pragma once

#include <string>
#include <string_view>

#include "jobq/job.h"

namespace jobq::worker {

/// A worker's request for no further jobs, as a report that names no real job. The server then ends the parked calls of
/// the worker.
inline constexpr std::string_view kLeaving = R"({"stopPod":true})";
inline constexpr std::string_view kNoJob = "none";

/// Returns the report of the end of a run.
std::string resultText(const Outcome& outcome);

/// Returns the report of resultText() with the id of its job, an element of a report about several jobs.
std::string namedText(const JobId& job, std::string_view report);

/// Returns the report of a lost job.
std::string lossText(const JobId& job);

/// Returns the report of a progress, a JSON text.
std::string progressText(std::string_view json);

/// Returns the report of a chunk. `chunk` is JSON text, `metrics` the text of a JSON object or empty.
std::string chunkText(std::string_view chunk, std::string_view metrics);

}  // namespace jobq::worker

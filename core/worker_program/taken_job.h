// Answers of the server to a worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq::worker {

/// A job as the server hands it out.
struct TakenJob {
  JobId id;
  std::string input;                         ///< text of a JSON object
  std::string s3Config{};                    ///< text of a JSON object, empty for none; a secret
  std::optional<Millis> executionTimeout{};  ///< if the policy of the job has a timeout
};

/// Reads the answer to a call for jobs: an array of jobs, one job, or null. Fails if an element is not a job. Pure.
Result<std::vector<TakenJob>> readTakenJobs(const std::string& answer);

/// Reads the answer to a call for stops, `{"jobsToStop": [...]}`. Any other text is no stop. Pure.
std::vector<JobId> readStops(const std::string& answer);

/// Reads the answer to a chunk, `{"next": n}`: the number of the first piece of the next chunk. Any other text is no
/// number. Pure.
std::optional<std::uint64_t> readNextChunk(const std::string& answer);

}  // namespace jobq::worker

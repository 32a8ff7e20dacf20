// Reading many jobs at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "connection/connection.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq::mysql {

/// The present state of a job, in a few numbers.
struct JobGlance {
  EndpointId endpoint;
  JobState state = JobState::inQueue;
  std::uint32_t attempt = 0;
  std::uint64_t chunks = 0;
};

/// Returns the jobs with the ids, by id, unless absent at `now`.
std::map<JobId, JobGlance, std::less<>> glanceAt(Connection& connection, const std::vector<JobId>& ids, Instant now);

}  // namespace jobq::mysql

// Reading jobs in the form for readers of the API, and many jobs at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "connection/connection.h"
#include "connection/statement.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq::mysql {

/// The columns of table `job` for a Job, in the order of reading in jobOf().
#define JOBQ_MYSQL_JOB                                                                                 \
  "job.id, job.endpoint, job.state, job.attempt, job.losses, job.retries, job.low, job.submitted_at, " \
  "job.queued_at, job.started_at, job.finished_at, job.expires_at, job.worker"
inline constexpr std::size_t kJobColumns = 13;

/// Returns the job of the current row, without output, progress and error.
Job jobOf(const CurrentRow& columns);

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

// Reading jobs in the form for readers of the API.
#pragma once

#include "connection.h"
#include "jobq/job.h"
#include "statement.h"

namespace jobq::sqlite {

/// The columns of table `job` for a Job, in the order of reading in jobOf().
#define JOBQ_JOB_COLUMNS                                                                               \
  "job.id, job.endpoint, job.state, job.attempt, job.losses, job.retries, job.low, job.submitted_at, " \
  "job.queued_at, job.started_at, job.finished_at, job.expires_at, job.worker"
inline constexpr int kJobColumns = 13;

/// Returns the job of the current row, without output, progress and error.
Job jobOf(const CurrentRow& columns);

}  // namespace jobq::sqlite

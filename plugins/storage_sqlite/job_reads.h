// A job as the readers see it.
#pragma once

#include "connection.h"
#include "jobq/job.h"
#include "statement.h"

namespace jobq::sqlite {

/// The columns of `job` that a Job is made from, in the order in which jobOf() reads them.
#define JOBQ_JOB_COLUMNS                                                                               \
  "job.id, job.endpoint, job.state, job.attempt, job.losses, job.retries, job.low, job.submitted_at, " \
  "job.queued_at, job.started_at, job.finished_at, job.expires_at, job.worker"
inline constexpr int kJobColumns = 13;

/// Without output, progress and error.
Job jobOf(const Query& query);

}  // namespace jobq::sqlite

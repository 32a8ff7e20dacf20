// The part of a job's row for decisions.
#pragma once

#include <cstdint>

#include "connection/statement.h"
#include "jobq/time.h"
#include "storage_sql/rows.h"

namespace jobq::mysql {

/// The part of a job's row needed for decisions.
struct JobRow : sql::JobRow {
  std::int64_t rank = 0;
  std::int64_t arrival = 0;
  Instant queuedAt{};
  bool hasProgress = false;
};

/// The columns of a job's row, in the order of reading in rowOf().
#define JOBQ_MYSQL_ROW                                                                                          \
  "job.num, job.id, job.endpoint, job.state, job.attempt, job.losses, job.retries, job.max_attempts, job.low, " \
  "job.execution_timeout, job.ttl, job.retention, job.submitted_at, job.expires_at, job.expiry_fixed, "         \
  "job.owes, job.chunks, job.taken, job.log_lines, job.taken_by, job.taken_from, job.retention_failed, "        \
  "job.queue_rank, job.arrival, job.queued_at, job.has_progress"
JobRow rowOf(const CurrentRow& columns);

}  // namespace jobq::mysql

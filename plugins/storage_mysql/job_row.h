// The part of a job's row for decisions.
#pragma once

#include <cstdint>

#include "connection/statement.h"
#include "jobq/call_id.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq::mysql {

/// The part of a job's row needed for decisions.
struct JobRow {
  std::int64_t num = 0;
  JobId id;
  EndpointId endpoint;
  JobState state = JobState::inQueue;
  std::uint32_t attempt = 0;
  std::uint32_t losses = 0;
  std::uint32_t retries = 0;
  std::uint32_t maxAttempts = 0;
  bool low = false;
  std::int64_t rank = 0;
  std::int64_t arrival = 0;
  Millis executionTimeout{0};
  Millis ttl{0};
  Millis retention{0};
  Instant submittedAt{};
  Instant queuedAt{};
  Instant expiresAt{};
  bool expiryFixed = false;
  bool owes = false;
  bool hasProgress = false;
  std::int64_t chunks = 0;
  std::int64_t taken = 0;
  std::int64_t logLines = 0;
  CallId takenBy = 0;  // the last call of consume() with chunks of the attempt
  std::int64_t takenFrom = 0;
};

/// The columns of a job's row, in the order of reading in rowOf().
#define JOBQ_MYSQL_ROW                                                                                          \
  "job.num, job.id, job.endpoint, job.state, job.attempt, job.losses, job.retries, job.max_attempts, job.low, " \
  "job.execution_timeout, job.ttl, job.retention, job.submitted_at, job.expires_at, job.expiry_fixed, "         \
  "job.owes, job.chunks, job.taken, job.log_lines, job.taken_by, job.taken_from, job.queue_rank, job.arrival, " \
  "job.queued_at, job.has_progress"
JobRow rowOf(const CurrentRow& columns);

}  // namespace jobq::mysql

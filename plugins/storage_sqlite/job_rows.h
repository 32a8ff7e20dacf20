// What several verbs do to a job inside the writer's transaction: find it, end it, put it back in line, remove it. The
// states come from transitions.h: next() is asked before anything is written.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "connection.h"
#include "jobq/job.h"
#include "jobq/time.h"
#include "jobq/transitions.h"
#include "statement.h"
#include "writer.h"

namespace jobq::sqlite {

/// lease_end of a claim that ends with the process. It is no time that a clock reaches.
inline constexpr std::int64_t kWithProcess = std::numeric_limits<std::int64_t>::max();
/// lease_end of a claim whose process has died; set when the file is opened.
inline constexpr std::int64_t kProcessDied = 0;

/// The part of a job's row that decisions are made from.
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
  Millis executionTimeout{0};
  Millis ttl{0};
  Millis retention{0};
  Instant submittedAt{};
  Instant expiresAt{};
  bool expiryFixed = false;
  bool owes = false;
  std::int64_t leaseEnd = 0;
  std::int64_t chunks = 0;
  std::int64_t taken = 0;
  std::int64_t logLines = 0;
};

/// The columns of a job's row, in the order in which rowOf() reads them.
#define JOBQ_ROW_COLUMNS                                                                            \
  "num, id, endpoint, state, attempt, losses, retries, max_attempts, low, execution_timeout, ttl, " \
  "retention, submitted_at, expires_at, expiry_fixed, owes, lease_end, chunks, taken, log_lines"
JobRow rowOf(const Query& query);

/// The job, unless it is absent at `now`.
std::optional<JobRow> findRow(Connection& connection, std::string_view id, Instant now);
/// The same; a job of another endpoint is absent.
std::optional<JobRow> findRow(Connection& connection, const JobKey& key, Instant now);
/// The job, if it is IN_PROGRESS under the lease's attempt.
std::optional<JobRow> findHeld(Connection& connection, const LeaseRef& lease, Instant now);

/// What an ended job says.
struct Ending {
  std::string_view error;
  std::string_view output;
};

/// Ends the job by `trigger`: its state, times, output, counters, and the webhook that it owes; its progress is over.
/// The trigger has to be allowed in the row's state.
void end(Step& step, const JobRow& row, Trigger trigger, const Ending& ending);

/// Puts a running job back in its old place in line with a new attempt; its chunks and progress are discarded.
void backInLine(Step& step, const JobRow& row, Trigger trigger, std::uint32_t losses, std::uint32_t retries);

/// Drops what the attempt has reported so far.
void discardReports(Step& step, const JobRow& row);

/// Removes the job and everything that hangs on it, whatever its state.
void removeJob(Step& step, const JobRow& row);

/// Collects all rows before anything is changed: a query must not run over rows that are being written.
std::vector<JobRow> collectRows(Query& query);

}  // namespace jobq::sqlite

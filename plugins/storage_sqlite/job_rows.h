// Changes of jobs inside the writer's transaction, shared by several operations: find a job, end a job, return a job to
// the queue, remove a job. The states come from `jobq/transitions.h`: next() is called before anything is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bodies/new_body.h"
#include "connection.h"
#include "jobq/job.h"
#include "jobq/time.h"
#include "jobq/transitions.h"
#include "reads/job_listing.h"
#include "statement.h"
#include "storage_sql/rows.h"
#include "writes/step.h"

namespace jobq::sqlite {

/// `holder` of a running job whose holder's life has ended.
inline constexpr std::int64_t kLifeEnded = 0;

/// The part of a job's row needed for decisions.
struct JobRow : sql::JobRow {
  std::int64_t holder = 0;  // epoch; or kLifeEnded
  std::int64_t output = 0;  // number of the row in `job_output`; 0: none
  bool isBrief = false;     // the bodies are in the row, see BriefBodies
};

/// The columns of a job's row, in the order of reading in rowOf().
#define JOBQ_ROW_COLUMNS                                                                                      \
  "num, id, endpoint, state, attempt, losses, retries, max_attempts, low, execution_timeout, ttl, "           \
  "retention, submitted_at, expires_at, expiry_fixed, owes, chunks, taken, log_lines, taken_by, taken_from, " \
  "retention_failed, "                                                                                        \
  "holder, output_num, brief_input IS NOT NULL"
JobRow rowOf(const CurrentRow& columns);

/// Returns the job, unless the job is absent at `now`.
std::optional<JobRow> findRow(Connection& connection, const LocatedId& id, Instant now);
/// As above; a job of another endpoint counts as absent.
std::optional<JobRow> findRow(Connection& connection, const LocatedId& id, const EndpointId& endpoint, Instant now);
/// Returns the job, unless the job is absent. No other transaction changes the row before the end of the step.
std::optional<JobRow> lockRow(Step& step, const JobKey& key);
/// Returns the job if the job is IN_PROGRESS under the attempt of the lease.
std::optional<JobRow> lockHeld(Step& step, const LeaseRef& lease);

/// Error and output of an ended job.
struct Ending {
  std::string_view error;
  NewBody* output = nullptr;  ///< null: the job has no output
};

/// The small bodies of a brief job, which is inserted with its end: the row of the job holds them, and the job has no
/// row in `job_input` and `job_output`. A retry moves the input to its table. Views of bytes of the caller.
struct BriefBodies {
  std::string_view apiKeyId;
  std::string_view input;
  std::string_view error;
  std::string_view output;
};

/// Bytes of the bodies of a brief job, together, up to which the row of the job holds them.
inline constexpr std::size_t kMostBrief = 512;

/// Ends the job by `trigger`: writes state, times, output, counters and the owed webhook, and deletes the progress. The
/// trigger must be allowed in the state of the row.
void end(Step& step, const JobRow& row, Trigger trigger, const Ending& ending);

/// Inserts error and output of an ending job, which has no output yet. Returns the number of their row in `job_output`,
/// for the column `output_num` of the job; 0 if there is neither.
std::int64_t insertOutput(Step& step, const Ending& ending);

/// Records the end of the job `row`, whose row in the table is in the state `to` and names the output already: writes
/// counters and the owed webhook. `row` is the row before the end.
void recordEnd(Step& step, const JobRow& row, JobState to, Instant expiry, const Ending& ending);

/// Returns a running job to the old position in the queue with a new attempt, and discards chunks and progress.
/// The number of the chunks in the row of the job becomes 0.
void returnToQueue(Step& step, const JobRow& row, Trigger trigger, std::uint32_t losses, std::uint32_t retries);

/// Deletes the row of the output, if the job has one. The caller changes or deletes the row of the job.
void deleteOutput(Step& step, const JobRow& row);

/// Deletes the progress and the chunks of the attempt. More chunks than `step.rowsLeft` stay in the table, and a note
/// names the job. The caller sets the number of the chunks in the row of the job to 0, or deletes the row: a chunk
/// behind that number is discarded. Reads end before a discarded chunk, a new chunk with its number replaces it, and
/// the sweeps remove it (removeDiscardedChunks()).
void discardReports(Step& step, const JobRow& row);

/// Removes discarded chunks that are still in the table, at most `step.rowsLeft`. Returns false if there are more.
bool removeDiscardedChunks(Step& step);

/// Removes the job with all its rows, in any state, and takes their number off `step.rowsLeft`. The chunks may be left
/// to the sweeps, as by discardReports().
void removeJob(Step& step, const JobRow& row);

/// Collects all rows of the result before anything is changed: a query must not run over rows during their change.
std::vector<JobRow> collectRows(Query& query);

}  // namespace jobq::sqlite

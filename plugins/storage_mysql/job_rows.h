// Changes of jobs inside a transaction, shared by several operations: lock a job, end a job, return a job to the queue,
// remove a job. The states come from `jobq/transitions.h`: next() is called before anything is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "connection/connection.h"
#include "connection/statement.h"
#include "job_row.h"
#include "jobq/job.h"
#include "jobq/time.h"
#include "jobq/transitions.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// Returns the job as last committed, unless the job is absent at `now`. A job of another endpoint counts as absent.
std::optional<JobRow> findRow(Connection& connection, const JobKey& key, Instant now);
/// Locks the row of the job until the end of the transaction, and returns the job unless the job is absent. Takes the
/// row from the writer if the writer has locked the row for the operation.
std::optional<JobRow> lockRow(const Step& step, std::string_view id);
/// As above; a job of another endpoint counts as absent.
std::optional<JobRow> lockRow(const Step& step, const JobKey& key);

/// Locks the job and returns the job if it is IN_PROGRESS under the attempt of the lease.
std::optional<JobRow> lockHeld(const Step& step, const LeaseRef& lease);

/// Error and output of an ended job. The output stays valid until the write has returned, because the row may be sent
/// later.
struct Ending {
  std::string_view error;
  std::string_view output{};
};

/// Ends the job by `trigger`: writes state, times, output, counters and the owed webhook, and deletes the progress. The
/// trigger must be allowed in the state of the row, which is locked.
void end(Step& step, const JobRow& row, Trigger trigger, const Ending& ending);

/// Puts the job into the table of the queue, with the values of the row.
void addToQueue(Step& step, const JobRow& row);

/// Returns a running job to the old position in the queue with a new attempt, and discards chunks and progress.
void returnToQueue(Step& step, const JobRow& row, Trigger trigger, std::uint32_t losses, std::uint32_t retries);

/// Deletes the progress and the chunks of the attempt. More chunks than `step.rowsLeft` stay in the table, and a note
/// names the job. The caller sets the number of the chunks in the row of the job to 0, or deletes the row: chunks from
/// the stored number on are discarded. Reads end before a discarded chunk, a new chunk with the same number replaces a
/// discarded chunk, and the sweeps remove discarded chunks (removeDiscardedChunks()).
void discardReports(Step& step, const JobRow& row);

/// Removes discarded chunks from the table, at most `step.rowsLeft`, except chunks that another transaction removes.
/// Returns false if there are more.
bool removeDiscardedChunks(Step& step);

/// Removes the job with all its rows, in any state, and takes the number of rows off `step.rowsLeft`. The chunks may be
/// left to the sweeps, as by discardReports().
void removeJob(Step& step, const JobRow& row);

/// Returns all rows of the result.
std::vector<JobRow> collectRows(Query& query);

}  // namespace jobq::mysql

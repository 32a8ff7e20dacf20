// Changes of jobs inside a transaction, shared by several operations: lock a job, end a job, return a job to the queue,
// remove a job. The states come from `jobq/transitions.h`: next() is called before anything is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "connection.h"
#include "job_row.h"
#include "jobq/job.h"
#include "jobq/time.h"
#include "jobq/transitions.h"
#include "statement.h"
#include "writer.h"

namespace jobq::mysql {

/// Returns the job as last committed, unless the job is absent at `now`. A job of another endpoint counts as absent.
std::optional<JobRow> findRow(Connection& connection, const JobKey& key, Instant now);
/// Locks the row of the job until the end of the transaction, and returns the job unless the job is absent. Takes the
/// row that the writer has locked for this operation, if there is one.
std::optional<JobRow> lockRow(const Step& step, std::string_view id);
/// As above; a job of another endpoint counts as absent.
std::optional<JobRow> lockRow(const Step& step, const JobKey& key);

/// Returns whether the job of a locked row is IN_PROGRESS under the attempt of the lease.
bool isHeld(const std::optional<JobRow>& row, const LeaseRef& lease);
/// Locks the job and returns the job if it is IN_PROGRESS under the attempt of the lease.
std::optional<JobRow> lockHeld(const Step& step, const LeaseRef& lease);

/// Error and output of an ended job. The output stays valid until the write has returned, because its row may be sent
/// later.
struct Ending {
  std::string_view error;
  std::string_view output;
};

/// Ends the job by `trigger`: writes state, times, output, counters and the owed webhook, and deletes the progress. The
/// trigger must be allowed in the state of the row, which is locked.
void end(Step& step, const JobRow& row, Trigger trigger, const Ending& ending);

/// Puts the job into the table of the queue, with the values of the row.
void addToQueue(Step& step, const JobRow& row);

/// Returns a running job to the old position in the queue with a new attempt, and discards chunks and progress.
void returnToQueue(Step& step, const JobRow& row, Trigger trigger, std::uint32_t losses, std::uint32_t retries);

/// Deletes the progress and the chunks of the attempt.
void discardReports(Step& step, const JobRow& row);

/// Removes the job with all its rows, in any state.
void removeJob(Step& step, const JobRow& row);

/// Most chunks that one step removes with expired jobs, or with the jobs of a deleted endpoint. A job may have a
/// million chunks, and no other write runs meanwhile.
inline constexpr std::int64_t kMostChunksRemoved = 20'000;

/// Removes a job that no caller can see any more, and takes the number of its chunks off `chunksLeft`. A job with more
/// chunks than that loses the last ones of them and stays: the function then returns false, and the next step goes on.
bool removeJobWithin(Step& step, const JobRow& row, std::int64_t& chunksLeft);

/// Returns all rows of the result.
std::vector<JobRow> collectRows(Query& query);

}  // namespace jobq::mysql

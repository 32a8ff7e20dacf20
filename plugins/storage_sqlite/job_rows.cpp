#include "job_rows.h"

#include <algorithm>
#include <utility>

#include "jobq/chunk_store.h"
#include "storage_sql/sweep.h"

namespace jobq::sqlite {
namespace {

constexpr char kDropProgress[] = "DELETE FROM job_progress WHERE num = ?1";

/// Adds an owed webhook: a snapshot of the present row, after the change of state.
void oweWebhook(Step& step, const JobRow& row) {
  const std::string id = row.id + "." + std::to_string(row.attempt);
  step.db
      .query(
          "INSERT INTO delivery (id, endpoint, job, state, due_at, owed_at, url, host, job_state, attempt, losses, "
          "retries, low, submitted_at, queued_at, started_at, finished_at, expires_at, worker, error) "
          "SELECT ?2, endpoint, id, 0, ?3, ?3, webhook, host_of(webhook), state, attempt, losses, retries, low, "
          "submitted_at, queued_at, started_at, finished_at, expires_at, worker, ifnull(error, '') "
          "FROM job JOIN job_input USING (num) LEFT JOIN job_output USING (output_num) WHERE num = ?1")
      .bind(row.num, id, step.now)
      .run();
  step.db
      .query(
          "INSERT INTO delivery_body (num, output, input, output_file, input_file) "
          "SELECT ?2, ifnull(output, x''), input, output_file, input_file FROM job JOIN job_input USING (num) "
          "LEFT JOIN job_output USING (output_num) WHERE num = ?1")
      .bind(row.num, sqlite3_last_insert_rowid(step.db.handle()))
      .run();
  step.counters.owes(row.endpoint, 1);
}

// The table `number` has a note for each job with discarded chunks in the table of the chunks: a name with the number
// of the job, and the number behind the last of these chunks.
#define JOBQ_DISCARDED "'discarded '"

/// Notes that the chunks of the job stay in the table.
void noteDiscarded(Step& step, const JobRow& row) {
  step.db
      .query("INSERT INTO number (name, value) VALUES (" JOBQ_DISCARDED
             " || ?1, ?2) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)")
      .bind(row.num, row.chunks)
      .run();
}

/// The statements of sql::removeNotedChunks().
struct Notes {
  static constexpr char kFirst[] =
      "SELECT CAST(substr(name, 11) AS INTEGER), value FROM number WHERE name > 'discarded ' AND name < 'discarded!' "
      "LIMIT 1";
  static constexpr char kChunksOfJob[] = "SELECT chunks FROM job WHERE num = ?1";
  static constexpr char kRemoveChunks[] = "DELETE FROM job_chunk WHERE num = ?1 AND seq >= ?2";
  static constexpr char kRemove[] = "DELETE FROM number WHERE name = " JOBQ_DISCARDED " || ?1";
  static constexpr char kMove[] = "UPDATE number SET value = ?1 WHERE name = " JOBQ_DISCARDED " || ?2";
  static std::int64_t nameOf(std::int64_t num) { return num; }
};

/// Keeps an ended job for its waiting caller. `row` is the row before the end.
void keepEnded(Step& step, const JobRow& row, JobState to, Instant expiry, const Ending& ending) {
  const std::string_view output = ending.output != nullptr ? ending.output->inRow() : std::string_view();
  const bool isInFile = ending.output != nullptr && ending.output->file().isFile();
  if (isInFile || output.size() + ending.error.size() > EndedJobs::kMostOfJob) return;
  auto running = step.running.find(row.num);
  if (!running || running->worker.empty()) return;
  Job job;
  job.workerId = std::move(running->worker);
  job.apiKeyId = std::move(running->apiKeyId);
  job.id = row.id;
  job.endpoint = row.endpoint;
  job.state = to;
  job.attempt = row.attempt;
  job.losses = row.losses;
  job.retries = row.retries;
  job.lowPriority = row.low;
  job.submittedAt = row.submittedAt;
  job.queuedAt = running->queuedAt;
  job.startedAt = running->startedAt;
  job.finishedAt = step.now;
  job.expiresAt = expiry;
  job.error = ending.error;
  job.output = output;
  step.ended.keep(std::move(job));
}

}  // namespace

JobRow rowOf(const CurrentRow& columns) {
  JobRow row;
  sql::readJobRow(columns, row);
  row.holder = columns.integer(sql::kJobRowColumns);
  row.output = columns.integer(sql::kJobRowColumns + 1);
  row.isBrief = columns.flag(sql::kJobRowColumns + 2);
  return row;
}

std::optional<JobRow> findRow(Connection& connection, const LocatedId& id, Instant now) {
  Query query =
      connection.query("SELECT " JOBQ_ROW_COLUMNS " FROM job WHERE num = " JOBQ_NUM_OF_ID " AND expires_at > ?3");
  if (!query.bind(id.id, id.unlisted, now).next()) return std::nullopt;
  return rowOf(query);
}

std::optional<JobRow> findRow(Connection& connection, const LocatedId& id, const EndpointId& endpoint, Instant now) {
  auto row = findRow(connection, id, now);
  if (row && row->endpoint != endpoint) row.reset();
  return row;
}

std::optional<JobRow> lockRow(Step& step, const JobKey& key) {
  return findRow(step.db, step.listing.locate(key.id), key.endpoint, step.now);
}

std::optional<JobRow> lockHeld(Step& step, const LeaseRef& lease) {
  auto row = findRow(step.db, step.listing.locate(lease.job), step.now);
  if (row && !row->isHeldUnder(lease)) row.reset();
  return row;
}

void end(Step& step, const JobRow& row, Trigger trigger, const Ending& ending) {
  const JobState to = next(row.state, trigger).value();
  const Instant expiry = row.expiryAfterEnd(to, step.now);
  const std::int64_t output = insertOutput(step, ending);
  step.db
      .query(
          "UPDATE job SET state = ?2, finished_at = ?3, expires_at = ?4, losses = ?5, retries = ?6, deadline = NULL, "
          "holder = NULL, output_num = nullif(?7, 0) WHERE num = ?1")
      .bind(row.num, to, step.now, expiry, row.losses, row.retries, output)
      .run();
  step.db.query(kDropProgress).bind(row.num).run();
  recordEnd(step, row, to, expiry, ending);
}

// SQLite numbers the row, one above the highest number.
std::int64_t insertOutput(Step& step, const Ending& ending) {
  const std::string_view output = ending.output != nullptr ? ending.output->inRow() : std::string_view();
  const std::int64_t file = ending.output != nullptr ? ending.output->nameIn(step) : 0;
  if (ending.error.empty() && output.empty() && file == 0) return 0;
  step.db.query("INSERT INTO job_output (error, output, output_file) VALUES (?1, ?2, nullif(?3, 0))")
      .bind(ending.error, Bytes{output}, file)
      .run();
  return sqlite3_last_insert_rowid(step.db.handle());
}

void deleteOutput(Step& step, const JobRow& row) {
  if (row.output != 0) step.db.query("DELETE FROM job_output WHERE output_num = ?1").bind(row.output).run();
}

void recordEnd(Step& step, const JobRow& row, JobState to, Instant expiry, const Ending& ending) {
  if (row.state == JobState::inProgress) {
    keepEnded(step, row, to, expiry, ending);
    step.running.end(row.num);
  }
  step.counters.ended(row.endpoint, row.state, to, row.low);
  if (row.owes) oweWebhook(step, row);
}

void returnToQueue(Step& step, const JobRow& row, Trigger trigger, std::uint32_t losses, std::uint32_t retries) {
  const JobState to = next(row.state, trigger).value();
  step.db
      .query(
          "UPDATE job SET state = ?2, attempt = attempt + 1, losses = ?3, retries = ?4, deadline = NULL, "
          "holder = NULL, chunks = 0, taken = 0, taken_by = 0 WHERE num = ?1")
      .bind(row.num, to, losses, retries)
      .run();
  discardReports(step, row);
  step.running.end(row.num);
  step.counters.moved(row.endpoint, row.state, to, row.low);
}

void discardReports(Step& step, const JobRow& row) {
  step.db.query(kDropProgress).bind(row.num).run();
  if (row.chunks == 0) return;
  if (row.chunks > step.rowsLeft) return noteDiscarded(step, row);
  step.rowsLeft -= row.chunks;
  step.db.query("DELETE FROM job_chunk WHERE num = ?1 AND seq < ?2").bind(row.num, row.chunks).run();
}

bool removeDiscardedChunks(Step& step) { return sql::removeNotedChunks<Notes>(step); }

void removeJob(Step& step, const JobRow& row) {
  discardReports(step, row);
  deleteOutput(step, row);
  if (!row.isBrief) step.db.query("DELETE FROM job_input WHERE num = ?1").bind(row.num).run();
  if (row.logLines > 0) {
    step.rowsLeft -= std::min(row.logLines, static_cast<std::int64_t>(kMaxLogLines));
    step.db.query("DELETE FROM job_log WHERE num = ?1").bind(row.num).run();
  }
  step.db.query("DELETE FROM job WHERE num = ?1").bind(row.num).run();
  if (row.state == JobState::inProgress) step.running.end(row.num);
  step.ended.forget(row.id);
  step.counters.gone(row.endpoint, row.state, row.low);
}

std::vector<JobRow> collectRows(Query& query) {
  std::vector<JobRow> rows;
  while (query.next()) rows.push_back(rowOf(query));
  return rows;
}

}  // namespace jobq::sqlite

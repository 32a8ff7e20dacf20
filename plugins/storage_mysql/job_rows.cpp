#include "job_rows.h"

#include <algorithm>

#include "jobq/chunk_store.h"
#include "storage_sql/sweep.h"

namespace jobq::mysql {
namespace {

/// Adds an owed webhook: a snapshot of the present row, after the change of state.
void oweWebhook(Step& step, const JobRow& row) {
  std::string url;
  {
    Query query = step.db.query("SELECT webhook FROM job_input WHERE num = ?");
    if (!query.bind(row.num).next()) throw StorageError("the database has lost the input of job " + row.id);
    url = query.text(0);
  }
  const std::string id = row.id + "." + std::to_string(row.attempt);
  const std::string host = step.receivers.nameOf(url);
  const std::int64_t num =
      step.db
          .query(
              "INSERT INTO delivery (id, endpoint, job, state, due_at, owed_at, url, host, job_state, attempt, "
              "losses, retries, low, submitted_at, queued_at, started_at, finished_at, expires_at, worker, error) "
              "SELECT ?, job.endpoint, job.id, 0, ?, ?, ?, ?, job.state, job.attempt, job.losses, job.retries, "
              "job.low, job.submitted_at, job.queued_at, job.started_at, job.finished_at, job.expires_at, "
              "job.worker, IFNULL(job_output.error, '') "
              "FROM job LEFT JOIN job_output ON job_output.num = job.num WHERE job.num = ?")
          .bind(id, step.now, step.now, url, host, row.num)
          .runInsert();
  step.db
      .query(
          "INSERT INTO delivery_body (num, output, input) SELECT ?, IFNULL(job_output.output, ''), "
          "job_input.input FROM job_input LEFT JOIN job_output ON job_output.num = job_input.num "
          "WHERE job_input.num = ?")
      .bind(num, row.num)
      .run();
  step.counters.owes(row.endpoint, 1);
}

void deleteProgress(Step& step, const JobRow& row) {
  if (row.hasProgress) step.db.later("DELETE FROM job_progress WHERE num = ?").add(row.num);
}

/// Takes the job out of the table for the current state, if the state has a table.
void leaveState(Step& step, const JobRow& row) {
  if (row.state == JobState::inProgress) {
    step.db.later("DELETE FROM running_job WHERE num = ?").add(row.num);
  } else if (row.state == JobState::inQueue) {
    step.db.later("DELETE FROM ready_job WHERE endpoint = ? AND low = ? AND queue_rank = ? AND arrival = ?")
        .add(row.endpoint, row.low, row.rank, row.arrival);
  }
}

// The table `counted` has a note for each job with discarded chunks in the table of the chunks: a name with the number
// of the job, and the number after the last discarded chunk.
std::string discardedName(std::int64_t num) { return "discarded " + std::to_string(num); }

/// Notes that the chunks of the job stay in the table.
void noteDiscarded(Step& step, const JobRow& row) {
  step.db
      .later(
          "INSERT INTO counted (name, value) VALUES (?, ?) ON DUPLICATE KEY UPDATE value = GREATEST(value, "
          "VALUES(value))")
      .add(discardedName(row.num), row.chunks);
}

/// The statements of sql::removeNotedChunks(). The lock of the row of a job excludes further chunks.
struct Notes {
  static constexpr char kFirst[] =
      "SELECT CAST(SUBSTR(name, 11) AS SIGNED), value FROM counted WHERE name > 'discarded ' AND name < 'discarded!' "
      "ORDER BY name LIMIT 1 FOR UPDATE SKIP LOCKED";
  static constexpr char kChunksOfJob[] = "SELECT chunks FROM job WHERE num = ? FOR UPDATE";
  static constexpr char kRemoveChunks[] = "DELETE FROM job_chunk WHERE num = ? AND seq >= ?";
  static constexpr char kRemove[] = "DELETE FROM counted WHERE name = ?";
  static constexpr char kMove[] = "UPDATE counted SET value = ? WHERE name = ?";
  static std::string nameOf(std::int64_t num) { return discardedName(num); }
};

}  // namespace

std::optional<JobRow> findRow(Connection& connection, const JobKey& key, Instant now) {
  Query query = connection.query("SELECT " JOBQ_MYSQL_ROW " FROM job WHERE id = ? AND endpoint = ? AND expires_at > ?");
  if (!query.bind(key.id, key.endpoint, now).next()) return std::nullopt;
  return rowOf(query);
}

std::optional<JobRow> lockRow(const Step& step, std::string_view id) {
  std::optional<JobRow> row = step.locked.extract(id);
  if (!row) {
    Query query = step.db.query("SELECT " JOBQ_MYSQL_ROW " FROM job WHERE id = ? FOR UPDATE");
    if (!query.bind(id).next()) return std::nullopt;
    row = rowOf(query);
  }
  if (row->expiresAt <= step.now) return std::nullopt;
  return row;
}

std::optional<JobRow> lockRow(const Step& step, const JobKey& key) {
  auto row = lockRow(step, key.id);
  if (row && row->endpoint != key.endpoint) row.reset();
  return row;
}

std::optional<JobRow> lockHeld(const Step& step, const LeaseRef& lease) {
  auto row = lockRow(step, lease.job);
  if (row && !row->isHeldUnder(lease)) row.reset();
  return row;
}

void end(Step& step, const JobRow& row, Trigger trigger, const Ending& ending) {
  const JobState to = next(row.state, trigger).value();
  const Instant expiry = row.expiryAfterEnd(to, step.now);
  leaveState(step, row);
  step.db
      .later(
          "UPDATE job SET state = ?, finished_at = ?, expires_at = ?, losses = ?, retries = ?, has_progress = 0 WHERE "
          "num = ?")
      .add(to, step.now, expiry, row.losses, row.retries, row.num);
  if (!ending.error.empty() || !ending.output.empty()) {
    step.db.later("REPLACE INTO job_output (num, error, output) VALUES (?, ?, ?)")
        .add(row.num, ending.error, Lent{ending.output});
  }
  deleteProgress(step, row);
  step.counters.ended(row.endpoint, row.state, to, row.low);
  if (row.owes) oweWebhook(step, row);
}

void addToQueue(Step& step, const JobRow& row) {
  step.db
      .later(
          "INSERT INTO ready_job (endpoint, low, queue_rank, arrival, num, expires_at, queued_at) "
          "VALUES (?, ?, ?, ?, ?, ?, ?)")
      .add(row.endpoint, row.low, row.rank, row.arrival, row.num, row.expiresAt, row.queuedAt);
}

void returnToQueue(Step& step, const JobRow& row, Trigger trigger, std::uint32_t losses, std::uint32_t retries) {
  const JobState to = next(row.state, trigger).value();
  leaveState(step, row);
  step.db
      .later(
          "UPDATE job SET state = ?, attempt = attempt + 1, losses = ?, retries = ?, chunks = 0, taken = 0, "
          "taken_by = 0, has_progress = 0 WHERE num = ?")
      .add(to, losses, retries, row.num);
  addToQueue(step, row);
  discardReports(step, row);
  step.counters.moved(row.endpoint, row.state, to, row.low);
}

void discardReports(Step& step, const JobRow& row) {
  deleteProgress(step, row);
  if (row.chunks == 0) return;
  if (row.chunks > step.rowsLeft) return noteDiscarded(step, row);
  step.rowsLeft -= row.chunks;
  step.db.later("DELETE FROM job_chunk WHERE num = ? AND seq < ?").add(row.num, row.chunks);
}

bool removeDiscardedChunks(Step& step) { return sql::removeNotedChunks<Notes>(step); }

void removeJob(Step& step, const JobRow& row) {
  leaveState(step, row);
  discardReports(step, row);
  step.db.later("DELETE FROM job_output WHERE num = ?").add(row.num);
  step.db.later("DELETE FROM job_input WHERE num = ?").add(row.num);
  if (row.logLines > 0) {
    step.rowsLeft -= std::min(row.logLines, static_cast<std::int64_t>(kMaxLogLines));
    step.db.later("DELETE FROM job_log WHERE num = ?").add(row.num);
  }
  step.db.later("DELETE FROM job WHERE num = ?").add(row.num);
  step.counters.gone(row.endpoint, row.state, row.low);
}

std::vector<JobRow> collectRows(Query& query) {
  std::vector<JobRow> rows;
  while (query.next()) rows.push_back(rowOf(query));
  return rows;
}

}  // namespace jobq::mysql

// The changes of jobs from outside: cancel, retry, purge, ttl, remove.
#include "jobs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "queue_order.h"
#include "storage_sql/jobs.h"
#include "storage_sql/rows.h"

namespace jobq::sqlite {
namespace {

/// Returns the job as submitted, with the time left until `expiry` as ttl, for a new rank by the queue policy. An input
/// in a file is `large`.
JobSpec specOf(Step& step, const JobRow& row, Instant expiry, const LargeInput& large) {
  Query query = step.db.query(
      "SELECT webhook, api_key, s3, input, priority, input_file FROM job_input JOIN job USING (num) WHERE num = ?1");
  if (!query.bind(row.num).next()) throw StorageError("the database has lost the input of job " + row.id);
  if (query.integer(5) != large.file.number) {
    throw StorageError("job " + row.id + " has changed during its retry; retry the job again");
  }
  JobSpec spec = sql::specOf(query, row, expiry - step.now);
  if (large.file.isFile()) spec.input = large.bytes;
  return spec;
}

/// Copies the input of a brief job (`job_rows.h`) to the table of the inputs, where a claim reads it.
void moveInput(Step& step, std::int64_t num) {
  step.db
      .query(
          "INSERT INTO job_input (num, webhook, api_key, s3, input) "
          "SELECT num, '', brief_key, x'', brief_input FROM job WHERE num = ?1")
      .bind(num)
      .run();
}

constexpr std::size_t kPurgeBatch = 1'000;

/// Deletes the rows of the first `jobs` queued jobs from a table keyed by the number of the job.
void purgeTable(Step& step, const char* sql, std::string_view endpoint, std::int64_t upTo, std::size_t jobs) {
  step.db.query(sql).bind(endpoint, step.now, upTo, jobs).run();
}

#define JOBQ_WAITING_AT                                                                                \
  "(SELECT num FROM job INDEXED BY job_waiting WHERE endpoint = ?1 AND state = 0 AND expires_at > ?2 " \
  "AND arrival <= ?3 ORDER BY low, rank, arrival LIMIT ?4)"

/// Counts the first jobs of the queue, at most kPurgeBatch, as gone, and takes their log lines off `step.rowsLeft`.
/// Stops when there is no room for more.
sql::Purged countPurged(Step& step, std::string_view endpoint, std::int64_t upTo) {
  sql::Purged purged;
  std::array<std::int64_t, 2> jobs{};  // normal, lowPriority
  Query query = step.db.query(
      "SELECT low, log_lines FROM job INDEXED BY job_waiting WHERE endpoint = ?1 AND state = 0 AND expires_at > ?2 "
      "AND arrival <= ?3 ORDER BY low, rank, arrival LIMIT ?4");
  query.bind(endpoint, step.now, upTo, kPurgeBatch);
  for (; step.rowsLeft > 0 && query.next(); ++purged.jobs) {
    ++jobs.at(query.size(0));
    step.rowsLeft -= std::min(query.integer(1), static_cast<std::int64_t>(kMaxLogLines));
  }
  for (const bool low : {false, true}) {
    if (jobs.at(low) > 0) step.counters.gone(EndpointId(endpoint), JobState::inQueue, low, jobs.at(low));
  }
  purged.more = step.rowsLeft <= 0 || purged.jobs == kPurgeBatch;
  return purged;
}

/// Removes the first jobs of the queue.
sql::Purged purge(Step& step, std::string_view endpoint, std::int64_t upTo) {
  const sql::Purged purged = countPurged(step, endpoint, upTo);
  if (purged.jobs == 0) return purged;
  // A queued job has neither output nor chunks nor progress: all were discarded by the retry, loss or release.
  purgeTable(step, "DELETE FROM job_log WHERE num IN " JOBQ_WAITING_AT, endpoint, upTo, purged.jobs);
  purgeTable(step, "DELETE FROM job_input WHERE num IN " JOBQ_WAITING_AT, endpoint, upTo, purged.jobs);
  purgeTable(step, "DELETE FROM job WHERE num IN " JOBQ_WAITING_AT, endpoint, upTo, purged.jobs);
  return purged;
}

/// The statements of sql::removeOfEndpoint().
struct EndpointRows {
  static constexpr char kJobsOfEndpoint[] =
      "SELECT " JOBQ_ROW_COLUMNS
      " FROM job INDEXED BY job_of_endpoint WHERE listed = 1 AND endpoint = ?1 ORDER BY num LIMIT ?2";
  static constexpr char kRemoveKeys[] =
      "DELETE FROM idempotency WHERE (endpoint, api_key, key) IN "
      "(SELECT endpoint, api_key, key FROM idempotency WHERE endpoint = ?1 LIMIT ?2)";
  static constexpr char kRemoveGroups[] =
      "DELETE FROM line_group WHERE (endpoint, name) IN "
      "(SELECT endpoint, name FROM line_group WHERE endpoint = ?1 LIMIT ?2)";
};

}  // namespace

CancelResult Jobs::cancel(const JobKey& key) {
  return writer_.write([&](Step& step) { return sql::cancelJob(step, key); });
}

RequeueResult Jobs::requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) {
  const LargeInput input = inputs_.readForRetry(key);
  return writer_.write([&](Step& step) {
    const auto change = [&](const JobRow& row, JobState to) { queueAgain(step, row, to, policy, input); };
    return sql::requeueJob(step, key, failedAttempt, change);
  });
}

void Jobs::queueAgain(Step& step, const JobRow& row, JobState to, const QueuePolicy& policy, const LargeInput& input) {
  const Instant expiry = row.expiryAfterRetry(step.now);
  if (row.isBrief) moveInput(step, row.num);
  const std::int64_t rank = rankOf(step, specOf(step, row, expiry, input), policy);
  step.db
      .query(
          "UPDATE job SET state = ?2, rank = ?3, arrival = ?4, queued_at = ?5, expires_at = ?6, attempt = attempt + 1, "
          "retries = retries + 1, losses = 0, started_at = NULL, finished_at = NULL, worker = '', chunks = 0, "
          "taken = 0, taken_by = 0, output_num = NULL, brief_key = NULL, brief_input = NULL, brief_error = NULL, "
          "brief_output = NULL WHERE num = ?1")
      .bind(row.num, to, rank, numbers_.next(), step.now, expiry)
      .run();
  deleteOutput(step, row);
  step.ended.forget(row.id);
}

// A million jobs in a single step would block all other writes for ten seconds. A step counts as a large write: other
// writes have their turn between two steps, and a checkpoint comes before the log has got long.
std::size_t Jobs::purgeQueued(std::string_view endpoint) {
  std::optional<std::int64_t> last;  // jobs that arrive during the purge stay
  const auto purgeSome = [&](Step& step) {
    if (!last) last = numbers_.last();
    return purge(step, endpoint, *last);
  };
  return sql::purgeAll([&] { return writer_.write(purgeSome, kSmallWrite + 1); });
}

std::optional<Instant> Jobs::setTtl(const JobKey& key, Millis ttl) {
  return writer_.write([&](Step& step) -> std::optional<Instant> {
    const auto row = lockRow(step, key);
    if (!row) return std::nullopt;
    const Instant expiry = expiryByTtl(row->submittedAt, row->expiresAt, step.now, ttl);
    step.db.query("UPDATE job SET expires_at = ?2, expiry_fixed = 1 WHERE num = ?1").bind(row->num, expiry).run();
    step.ended.forget(row->id);
    return expiry;
  });
}

std::size_t Jobs::remove(std::string_view endpoint, std::size_t batch) {
  return writer_.write([&](Step& step) {
    step.listing.listAll(step.db);
    const std::size_t removed = sql::removeOfEndpoint<EndpointRows>(step, endpoint, batch);
    if (removed < batch) step.counters.forget(EndpointId(endpoint));
    return removed;
  });
}

}  // namespace jobq::sqlite

// The changes of jobs from outside: cancel, retry, purge, ttl, remove.
#include "jobs.h"

#include <algorithm>

#include "job_rows.h"
#include "queue_order.h"
#include "storage_sql/jobs.h"
#include "storage_sql/rows.h"
#include "writes/unique_step.h"

namespace jobq::mysql {
namespace {

/// Most jobs removed by one step of a purge: a longer step would lock the queue for too long.
constexpr std::size_t kPurgeBatch = 500;

/// Returns the job as submitted, with the time left until `expiry` as ttl, for a new rank by the queue policy.
JobSpec specOf(Step& step, const JobRow& row, Instant expiry) {
  Query query = step.db.query(
      "SELECT job_input.webhook, job_input.api_key, job_input.s3, job_input.input, job.priority "
      "FROM job_input JOIN job ON job.num = job_input.num WHERE job.num = ?");
  if (!query.bind(row.num).next()) throw StorageError("the database has lost the input of job " + row.id);
  return sql::specOf(query, row, expiry - step.now);
}

void queueAgain(Step& step, JobRow& row, JobState to, const QueuePolicy& policy) {
  const Instant expiry = row.expiryAfterRetry(step.now);
  row.rank = rankOf(step, specOf(step, row, expiry), policy);
  row.arrival = step.numbers.next();
  row.queuedAt = step.now;
  row.expiresAt = expiry;
  step.db
      .query(
          "UPDATE job SET state = ?, queue_rank = ?, arrival = ?, queued_at = ?, expires_at = ?, "
          "attempt = attempt + 1, retries = retries + 1, losses = 0, started_at = NULL, finished_at = NULL, "
          "worker = '', chunks = 0, taken = 0, taken_by = 0, has_progress = 0 WHERE num = ?")
      .bind(to, row.rank, row.arrival, step.now, row.expiresAt, row.num)
      .run();
  addToQueue(step, row);
  step.db.query("DELETE FROM job_output WHERE num = ?").bind(row.num).run();
}

/// Removes the first jobs of the queue that arrived up to the number `upTo`.
sql::Purged purge(Step& step, std::string_view endpoint, std::int64_t upTo) {
  std::vector<JobRow> rows;
  {
    Query query = step.db.query("SELECT " JOBQ_MYSQL_ROW
                                " FROM ready_job JOIN job ON job.num = ready_job.num WHERE ready_job.endpoint = ? AND "
                                "ready_job.expires_at > ? AND ready_job.arrival <= ? "
                                "ORDER BY ready_job.low, ready_job.queue_rank, ready_job.arrival LIMIT ? FOR UPDATE");
    query.bind(endpoint, step.now, upTo, kPurgeBatch);
    rows = collectRows(query);
  }
  std::size_t removed = 0;
  for (; removed < rows.size() && step.rowsLeft > 0; ++removed) removeJob(step, rows[removed]);
  return {removed, removed < rows.size() || removed == kPurgeBatch};
}

/// The statements of sql::removeOfEndpoint().
struct EndpointRows {
  static constexpr char kJobsOfEndpoint[] =
      "SELECT " JOBQ_MYSQL_ROW " FROM job WHERE endpoint = ? ORDER BY num LIMIT ? FOR UPDATE";
  static constexpr char kRemoveKeys[] = "DELETE FROM idempotency WHERE endpoint = ? LIMIT ?";
  static constexpr char kRemoveGroups[] = "DELETE FROM queue_group WHERE endpoint = ? LIMIT ?";
};

}  // namespace

CancelResult Jobs::cancel(const JobKey& key) {
  return writer_.write([&](Step& step) { return sql::cancelJob(step, key); }, {.job = key.id});
}

RequeueResult Jobs::requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) {
  return untilUnique([&](bool isRepeated) {
    return writer_.write([&](Step& step) {
      if (isRepeated) step.numbers.changeGenerator();
      const auto change = [&](JobRow& row, JobState to) { queueAgain(step, row, to, policy); };
      return sql::requeueJob(step, key, failedAttempt, change);
    });
  });
}

std::size_t Jobs::purgeQueued(std::string_view endpoint) {
  std::optional<std::int64_t> last;  // jobs arriving during the purge stay
  const auto purgeSome = [&](Step& step) {
    if (!last) last = step.numbers.next();
    return purge(step, endpoint, *last);
  };
  return sql::purgeAll([&] { return writer_.write(purgeSome); });
}

std::optional<Instant> Jobs::setTtl(const JobKey& key, Millis ttl) {
  return writer_.write([&](Step& step) -> std::optional<Instant> {
    const auto row = lockRow(step, key);
    if (!row) return std::nullopt;
    const Instant expiry = expiryByTtl(row->submittedAt, row->expiresAt, step.now, ttl);
    step.db.query("UPDATE job SET expires_at = ?, expiry_fixed = 1 WHERE num = ?").bind(expiry, row->num).run();
    if (row->state == JobState::inQueue) {
      step.db
          .query(
              "UPDATE ready_job SET expires_at = ? WHERE endpoint = ? AND low = ? AND queue_rank = ? AND "
              "arrival = ?")
          .bind(expiry, row->endpoint, row->low, row->rank, row->arrival)
          .run();
    }
    return expiry;
  });
}

std::size_t Jobs::remove(std::string_view endpoint, std::size_t batch) {
  return writer_.write([&](Step& step) {
    const std::size_t removed = sql::removeOfEndpoint<EndpointRows>(step, endpoint, batch);
    if (removed < batch) forgetTotals(step.db, endpoint);
    return removed;
  });
}

}  // namespace jobq::mysql

// The step of a submission: rank, rows and idempotency record of the job are written together or not at all.
#include <algorithm>

#include "job_rows.h"
#include "jobq/planned.h"
#include "jobs.h"
#include "queue_order.h"
#include "writes/unique_step.h"

namespace jobq::mysql {
namespace {

/// Returns whether a repeated insert() has found the job of the first call; throws StorageError if a different job has
/// the id.
bool isInserted(Step& step, const JobSpec& job) {
  std::int64_t num = 0;
  bool isSame = false;
  {
    Query query = step.db.query("SELECT num, endpoint = ? AND expires_at > ? FROM job WHERE id = ? FOR UPDATE");
    if (!query.bind(job.endpoint, step.now, job.id).next()) return false;
    num = query.integer(0);
    isSame = query.flag(1);
  }
  if (isSame) {
    Query query = step.db.query("SELECT 1 FROM job_input WHERE num = ? AND api_key = ? AND input = ?");
    isSame = query.bind(num, job.apiKeyId, job.input).next();
  }
  if (!isSame) throw StorageError("job " + job.id + " exists already; make another id");
  return true;
}

struct KnownKey {
  IdempotencyRecord answer;
  bool isAlive;
};

/// Reads the present row of a query for hash, job and expiry of an idempotency record.
KnownKey keyOf(const CurrentRow& row, const Idempotency& idempotency, Instant now) {
  const bool isAlive = row.instant(2) > now;
  if (row.text(0) != idempotency.bodyHash) return {KeyConflict{}, isAlive};
  return {Duplicate{row.text(1)}, isAlive};
}

/// Returns the answer of an earlier request under the same key, if any, and locks the record of the key.
std::optional<IdempotencyRecord> lockEarlier(Step& step, const JobSpec& job, const Idempotency& idempotency) {
  Query query = step.db.query(
      "SELECT body_hash, job, expires_at FROM idempotency "
      "WHERE endpoint = ? AND api_key = ? AND idempotency_key = ? FOR UPDATE");
  if (!query.bind(job.endpoint, job.apiKeyId, idempotency.key).next()) return std::nullopt;
  KnownKey known = keyOf(query, idempotency, step.now);
  if (!known.isAlive) return std::nullopt;
  return std::move(known.answer);
}

/// Notes the key for the job, in the place of an outlived record.
void remember(Step& step, const JobSpec& job, const Idempotency& idempotency) {
  step.db
      .query("DELETE FROM idempotency WHERE endpoint = ? AND api_key = ? AND idempotency_key = ? AND expires_at <= ?")
      .bind(job.endpoint, job.apiKeyId, idempotency.key, step.now)
      .run();
  step.db
      .query(
          "INSERT INTO idempotency (endpoint, api_key, idempotency_key, body_hash, job, expires_at) "
          "VALUES (?, ?, ?, ?, ?, ?)")
      .bind(job.endpoint, job.apiKeyId, idempotency.key, idempotency.bodyHash, job.id, step.now + kIdempotencyLife)
      .run();
}

void insertRow(Step& step, const JobSpec& job, const JobRow& row) {
  step.db
      .later(
          "INSERT INTO job (num, id, endpoint, state, low, queue_rank, max_attempts, priority, execution_timeout, ttl, "
          "retention, submitted_at, queued_at, expires_at, owes, retention_failed) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, -1))")
      .add(row.num, job.id, job.endpoint, JobState::inQueue, job.policy.lowPriority, row.rank, job.maxAttempts,
           job.policy.priority, job.policy.executionTimeout, job.policy.ttl, job.retention, step.now, step.now,
           row.expiresAt, !job.webhook.empty(), job.retentionFailed.value_or(Millis(-1)));
  step.db.later("INSERT INTO job_input (num, webhook, api_key, s3, input) VALUES (?, ?, ?, ?, ?)")
      .add(row.num, job.webhook, job.apiKeyId, job.s3Config, Lent{job.input});
}

/// A new job is inserted without a look for an earlier one, because the database refuses a second job with the id. Such
/// a refusal ends the step, and the next attempt looks first.
InsertResult insertNow(Step& step, const JobSpec& job, const QueuePolicy& policy,
                       const std::optional<Idempotency>& idempotency, bool looksFirst) {
  if (looksFirst) step.numbers.changeGenerator();
  if (idempotency) {
    if (auto first = lockEarlier(step, job, *idempotency)) {
      const auto* duplicate = std::get_if<Duplicate>(&*first);
      if (duplicate != nullptr && duplicate->id == job.id) return Inserted{};  // the call is repeated
      return std::visit([](auto& answer) -> InsertResult { return std::move(answer); }, *first);
    }
  }
  if ((looksFirst || !policy.group(job).empty()) && isInserted(step, job)) return Inserted{};
  if (idempotency) remember(step, job, *idempotency);
  JobRow row;
  row.endpoint = job.endpoint;
  row.low = job.policy.lowPriority;
  row.rank = rankOf(step, job, policy);
  row.num = row.arrival = step.numbers.next();
  row.expiresAt = step.now + job.policy.ttl;
  row.queuedAt = step.now;
  insertRow(step, job, row);
  addToQueue(step, row);
  step.counters.added(job.endpoint, job.policy.lowPriority);
  return Inserted{};
}

}  // namespace

InsertResult Jobs::insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) {
  refusePlanned(job, terms);
  if (std::holds_alternative<Begun>(terms.start)) throwLacking("JobStore::insert() with Begun");
  return untilUnique([&](bool isRepeated) {
    return writer_.write([&](Step& step) { return insertNow(step, job, policy, terms.idempotency, isRepeated); },
                         {.bytes = job.input.size()});
  });
}

std::optional<IdempotencyRecord> Jobs::findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                            const Idempotency& idempotency) {
  return readers_.read([&](Connection& connection) -> std::optional<IdempotencyRecord> {
    Query query = connection.query(
        "SELECT body_hash, job, expires_at FROM idempotency "
        "WHERE endpoint = ? AND api_key = ? AND idempotency_key = ?");
    if (!query.bind(endpoint, apiKeyId, idempotency.key).next()) return std::nullopt;
    KnownKey known = keyOf(query, idempotency, clock_.now());
    if (!known.isAlive) return std::nullopt;
    return std::move(known.answer);
  });
}

}  // namespace jobq::mysql

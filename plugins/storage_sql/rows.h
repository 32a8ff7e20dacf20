// Rows of jobs and deliveries as types of the contract. `Columns` is the current row of a query: CurrentRow of a
// storage. The order of the columns is the order of the reading. Each storage names its columns in a statement, in this
// order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "jobq/call_id.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/outbox_store.h"
#include "jobq/record_store.h"
#include "jobq/time.h"
#include "jobq/transitions.h"

namespace jobq::sql {

/// The part of a job's row needed for decisions. A storage adds the columns of its own.
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
  std::optional<Millis> retentionFailed{};
  Instant submittedAt{};
  Instant expiresAt{};
  bool expiryFixed = false;
  bool owes = false;
  std::int64_t chunks = 0;
  std::int64_t taken = 0;
  std::int64_t logLines = 0;
  CallId takenBy = 0;  // the last call of consume() with chunks of the attempt
  std::int64_t takenFrom = 0;

  /// Returns whether the job is IN_PROGRESS under the attempt of the lease.
  bool isHeldUnder(const LeaseRef& lease) const { return state == JobState::inProgress && attempt == lease.attempt; }
  /// Returns the expiry of the job if the job ends as `to` at `now`.
  Instant expiryAfterEnd(JobState to, Instant now) const {
    return expiryFixed ? expiresAt : jobq::expiryAfterEnd(to, now, expiresAt, retention, retentionFailed);
  }
  /// Returns the expiry of the job if a retry queues the job again at `now`.
  Instant expiryAfterRetry(Instant now) const {
    return expiryFixed ? expiresAt : jobq::expiryAfterRetry(submittedAt, now, ttl, retentionFailed);
  }
};

inline constexpr int kJobRowColumns = 22;

/// Reads kJobRowColumns columns: num, id, endpoint, state, attempt, losses, retries, max_attempts, low,
/// execution_timeout, ttl, retention, submitted_at, expires_at, expiry_fixed, owes, chunks, taken, log_lines, taken_by,
/// taken_from, retention_failed.
template <class Columns>
void readJobRow(const Columns& columns, JobRow& row) {
  row.num = columns.integer(0);
  row.id = columns.text(1);
  row.endpoint = columns.text(2);
  row.state = columns.state(3);
  row.attempt = columns.number(4);
  row.losses = columns.number(5);
  row.retries = columns.number(6);
  row.maxAttempts = columns.number(7);
  row.low = columns.flag(8);
  row.executionTimeout = columns.millis(9);
  row.ttl = columns.millis(10);
  row.retention = columns.millis(11);
  row.submittedAt = columns.instant(12);
  row.expiresAt = columns.instant(13);
  row.expiryFixed = columns.flag(14);
  row.owes = columns.flag(15);
  row.chunks = columns.integer(16);
  row.taken = columns.integer(17);
  row.logLines = columns.integer(18);
  row.takenBy = columns.count(19);
  row.takenFrom = columns.integer(20);
  if (!columns.null(21)) row.retentionFailed = columns.millis(21);
}

/// Reads the columns from number `first` on: attempt, losses, retries, low, submitted_at, queued_at, started_at,
/// finished_at, expires_at, worker.
template <class Columns>
void readRun(const Columns& columns, int first, Job& job) {
  job.attempt = columns.number(first);
  job.losses = columns.number(first + 1);
  job.retries = columns.number(first + 2);
  job.lowPriority = columns.flag(first + 3);
  job.submittedAt = columns.instant(first + 4);
  job.queuedAt = columns.instant(first + 5);
  job.startedAt = columns.instantOrNone(first + 6);
  job.finishedAt = columns.instantOrNone(first + 7);
  job.expiresAt = columns.instant(first + 8);
  job.workerId = columns.text(first + 9);
}

inline constexpr int kJobColumns = 13;

/// Returns the job of the row, without output, progress and error. Reads kJobColumns columns: id, endpoint, state,
/// attempt, losses, retries, low, submitted_at, queued_at, started_at, finished_at, expires_at, worker.
template <class Columns>
Job jobOf(const Columns& columns) {
  Job job;
  job.id = columns.text(0);
  job.endpoint = columns.text(1);
  job.state = columns.state(2);
  readRun(columns, 3, job);
  return job;
}

/// A delivery and the number of its row.
struct NumberedDelivery {
  std::int64_t num = 0;
  Delivery delivery;
};

/// Returns the delivery of the row, without attempts and bodies. Reads num, id, endpoint, job, state, due_at, url,
/// job_state, attempt, losses, retries, low, submitted_at, queued_at, started_at, finished_at, expires_at, worker,
/// error, host, tries, claims.
template <class Columns>
NumberedDelivery deliveryOf(const Columns& columns) {
  NumberedDelivery numbered;
  numbered.num = columns.integer(0);
  Delivery& delivery = numbered.delivery;
  delivery.id = columns.text(1);
  delivery.state = static_cast<DeliveryState>(columns.integer(4));
  delivery.dueAt = columns.instant(5);
  delivery.url = columns.text(6);
  delivery.host = columns.text(19);
  delivery.tries = columns.number(20);
  delivery.claims = columns.count(21);
  Job& job = delivery.job;
  job.endpoint = columns.text(2);
  job.id = columns.text(3);
  job.state = columns.state(7);
  readRun(columns, 8, job);
  job.error = columns.text(18);
  return numbered;
}

/// Returns the attempt of the row: time, status, duration, reason, reply. A delivered attempt has an empty reason,
/// because the reason of a failure is never empty.
template <class Columns>
DeliveryAttempt attemptOf(const Columns& columns) {
  std::string reason = columns.text(3);
  return {columns.instant(0), static_cast<int>(columns.integer(1)), columns.millis(2),
          reason.empty() ? std::nullopt : std::optional(std::move(reason)), columns.text(4)};
}

/// Returns the record of the row: kind, id, name, body, version, changed_at.
template <class Columns>
Record recordOf(const Columns& columns) {
  return {columns.text(0), columns.text(1), columns.text(2), columns.text(3), columns.count(4), columns.instant(5), 0};
}

/// Returns the first ten columns as a claimed job, without times of the run and bodies: id, attempt, endpoint, worker,
/// execution_timeout, ttl, low, priority, submitted_at, log_lines.
template <class Columns>
ClaimedJob claimedJobOf(const Columns& columns) {
  ClaimedJob job;
  job.lease = {columns.text(0), columns.number(1)};
  job.endpoint = columns.text(2);
  job.worker = columns.text(3);
  job.policy = {columns.millis(4), columns.millis(5), columns.flag(6), static_cast<std::int32_t>(columns.integer(7))};
  job.submittedAt = columns.instant(8);
  job.logLines = columns.count(9);
  return job;
}

/// Returns the job as submitted, with the time that is left as `ttl`, for a new rank by the queue policy. Reads
/// webhook, api_key, s3, input, priority.
template <class Columns>
JobSpec specOf(const Columns& columns, const JobRow& row, Millis ttl) {
  JobSpec spec;
  spec.id = row.id;
  spec.endpoint = row.endpoint;
  spec.webhook = columns.text(0);
  spec.apiKeyId = columns.text(1);
  spec.s3Config = columns.text(2);
  spec.input = columns.text(3);
  spec.policy = {row.executionTimeout, ttl, row.low, static_cast<std::int32_t>(columns.integer(4))};
  spec.retention = row.retention;
  spec.retentionFailed = row.retentionFailed;
  spec.maxAttempts = row.maxAttempts;
  return spec;
}

}  // namespace jobq::sql

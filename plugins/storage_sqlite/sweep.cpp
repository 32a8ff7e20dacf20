// The end of overdue jobs and of jobs with a lost worker, and the removal of discarded chunks (`job_rows.h`). Each task
// reads the front of an index, or the few jobs that are not listed (`job_listing.h`), and changes at most `max` rows,
// so a sweep is short however many rows the storage holds. A sweep without a backlog deletes the files of removed
// bodies (`body_sweep.h`) and returns free space to the file system (`shrink.h`).
#include <exception>
#include <iterator>
#include <list>
#include <utility>
#include <vector>

#include "job_rows.h"
#include "leases.h"
#include "storage_sql/sweep.h"

namespace jobq::sqlite {
namespace {

using Sweep = sql::Sweep<Step>;

/// Returns at most `max` expired jobs, listed ones and others (`job_listing.h`).
std::vector<JobRow> expiredRows(Sweep& sweep) {
  std::vector<JobRow> rows = sweep.due("SELECT " JOBQ_ROW_COLUMNS
                                       " FROM job INDEXED BY job_expiry WHERE listed = 1 AND expires_at <= ?1 "
                                       "ORDER BY expires_at LIMIT ?2",
                                       sweep.step.now, sweep.max);
  Query query = sweep.step.db.query(
      "SELECT " JOBQ_ROW_COLUMNS " FROM job NOT INDEXED WHERE num > ?3 AND listed = 0 AND expires_at <= ?1 LIMIT ?2");
  const std::size_t left = sweep.max - rows.size();
  query.bind(sweep.step.now, left, sweep.step.listing.listed());
  std::vector<JobRow> unlisted = collectRows(query);
  if (unlisted.size() == left) sweep.swept.more = true;
  std::move(unlisted.begin(), unlisted.end(), std::back_inserter(rows));
  return rows;
}

/// Returns the job `num`, unless it has expired.
std::optional<JobRow> runningRow(Step& step, std::int64_t num) {
  Query query = step.db.query("SELECT " JOBQ_ROW_COLUMNS " FROM job WHERE num = ?1 AND expires_at > ?2");
  if (!query.bind(num, step.now).next()) return std::nullopt;
  return rowOf(query);
}

void endOverdue(Sweep& sweep) {
  const std::vector<std::int64_t> overdue = sweep.step.running.overdue(sweep.step.now, sweep.max);
  for (const std::int64_t num : overdue) {
    const auto row = runningRow(sweep.step, num);
    if (!row || sweep.isReported(*row)) continue;
    if (overdue.size() == sweep.max) sweep.swept.more = true;
    sweep.endOverdue(*row);
  }
}

void sweepLost(Sweep& sweep) {
  const char* const sql =
      "SELECT " JOBQ_ROW_COLUMNS
      " FROM job INDEXED BY job_lost WHERE holder = 0 AND deadline > ?1 AND expires_at > ?1 LIMIT ?2";
  for (JobRow& row : sweep.dueRunning(sql, sweep.step.now, sweep.max)) sweep.loseJob(std::move(row));
}

/// Ends the jobs that were left out of their claims: FAILED if the file is damaged, otherwise back to the queue. Their
/// endpoints are looked at again, because further jobs may wait behind them.
void endLeftOut(Sweep& sweep, const std::list<LeftOutJob>& jobs) {
  for (const LeftOutJob& job : jobs) {
    sweep.requeuedAt.insert(job.endpoint);
    const auto row = lockHeld(sweep.step, job.lease);
    if (!row) continue;
    if (job.isDamaged) {
      sweep.swept.finished.push_back({row->endpoint, row->id});
      end(sweep.step, *row, Trigger::fail,
          {"the input of the job cannot be read; the log of the server has the reason"});
    } else {
      sweep.release(*row);
    }
  }
}

void dropOutlived(Sweep& sweep) {
  constexpr Millis kDay{86'400'000};
  sweep.drop(
      "DELETE FROM idempotency WHERE (endpoint, api_key, key) IN "
      "(SELECT endpoint, api_key, key FROM idempotency WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
      Millis(0));
  // The parts of a delivery are deleted first, while the delivery still names its parts.
#define JOBQ_OUTLIVED "(SELECT num FROM delivery WHERE settled_at <= ?1 ORDER BY settled_at LIMIT ?2)"
  sweep.step.db.query("DELETE FROM delivery_attempt WHERE num IN " JOBQ_OUTLIVED)
      .bind(sweep.step.now - kDeliveryRecordLife, sweep.max)
      .run();
  sweep.step.db.query("DELETE FROM delivery_body WHERE num IN " JOBQ_OUTLIVED)
      .bind(sweep.step.now - kDeliveryRecordLife, sweep.max)
      .run();
  sweep.drop("DELETE FROM delivery WHERE num IN " JOBQ_OUTLIVED, kDeliveryRecordLife);
  sweep.drop(
      "DELETE FROM record_removed WHERE (kind, id) IN "
      "(SELECT kind, id FROM record_removed WHERE removed_at <= ?1 ORDER BY removed_at LIMIT ?2)",
      kDay);
}

}  // namespace

SweepResult Leases::sweep(std::size_t max) {
  std::list<LeftOutJob> unreadable = bodies_.inputs.extractLeftOutJobs(clock_.now());
  SweepResult result;
  const bool removes = hold_.isOver();
  try {
    result = writer_.write([&](Step& step) {
      Sweep sweep{step, max, reports_};
      if (removes) sweep.freeExpired(expiredRows(sweep));
      endLeftOut(sweep, unreadable);
      endOverdue(sweep);
      sweepLost(sweep);
      if (removes) dropOutlived(sweep);
      if (!removeDiscardedChunks(step)) sweep.swept.more = true;
      return sweep.result();
    });
  } catch (...) {
    bodies_.inputs.keepLeftOutJobs(std::move(unreadable));
    throw;
  }
  // The callers and workers of ended jobs wait for the result, so only a sweep without such jobs deletes files and cuts
  // space off.
  const bool isAwaited =
      !result.stopped.empty() || !result.finished.empty() || !result.expired.empty() || !result.requeuedAt.empty();
  if (result.more) return result;
  result.more = isAwaited ? bodySweep_.isDue() : bodySweep_.run();
  if (!result.more && !isAwaited) shrinker_.run();
  return result;
}

void Leases::endLeftOutJobs() noexcept {
  try {
    const std::list<LeftOutJob> jobs = bodies_.inputs.extractLeftOutJobs(Instant::max());
    if (jobs.empty()) return;
    writer_.write([&](Step& step) {
      Sweep sweep{step, jobs.size(), reports_};
      endLeftOut(sweep, jobs);
      return true;
    });
  } catch (const std::exception&) {
    // The storage refuses writes, or memory is short: the next start counts the jobs as lost.
  }
}

SweepResult Leases::giveBack(std::span<const ReturnedJob> jobs) {
  if (jobs.empty()) return {};
  return writer_.write([&](Step& step) { return sql::giveBack(step, jobs, reports_); });
}

}  // namespace jobq::sqlite

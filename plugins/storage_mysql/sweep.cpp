// The end of overdue jobs and of jobs with a lost worker, and the removal of discarded chunks (`job_rows.h`). Each task
// reads the front of an index and changes at most `max` rows, so a sweep is short however many rows the storage holds.
// Rows that another transaction has locked are passed over: a sweep of another node or a report is at work there.
#include "storage_sql/sweep.h"
#include "delivery_rows.h"
#include "job_rows.h"
#include "leases.h"
#include "lives.h"

namespace jobq::mysql {
namespace {

using Sweep = sql::Sweep<Step>;

std::vector<JobRow> expiredRows(Sweep& sweep) {
  return sweep.due("SELECT " JOBQ_MYSQL_ROW
                   " FROM job FORCE INDEX (job_expiry) WHERE expires_at <= ? ORDER BY expires_at "
                   "LIMIT ? FOR UPDATE SKIP LOCKED",
                   sweep.step.now, sweep.max);
}

void endOverdue(Sweep& sweep) {
  const char* const sql = "SELECT " JOBQ_MYSQL_ROW
                          " FROM running_job FORCE INDEX (running_until) STRAIGHT_JOIN job "
                          "ON job.num = running_job.num WHERE running_job.deadline <= ? AND "
                          "job.expires_at > ? ORDER BY running_job.deadline LIMIT ? FOR UPDATE SKIP LOCKED";
  for (const JobRow& row : sweep.dueRunning(sql, sweep.step.now, sweep.step.now, sweep.max)) sweep.endOverdue(row);
}

/// Takes back at most `most` jobs of a life. The note of a life without a running job is deleted.
void recoverJobs(Sweep& sweep, std::uint64_t epoch, std::size_t most) {
  const char* const sql = "SELECT " JOBQ_MYSQL_ROW
                          " FROM running_job FORCE INDEX (running_of_life) STRAIGHT_JOIN job "
                          "ON job.num = running_job.num WHERE running_job.epoch = ? AND "
                          "job.expires_at > ? ORDER BY running_job.num LIMIT ? FOR UPDATE SKIP LOCKED";
  for (JobRow& row : sweep.dueRunning(sql, epoch, sweep.step.now, most)) sweep.loseJob(std::move(row));
  Query left = sweep.step.db.query("SELECT 1 FROM running_job WHERE epoch = ? LIMIT 1");
  if (left.bind(epoch).next()) return;
  sweep.step.db.query("DELETE FROM ended_life WHERE epoch = ?").bind(epoch).run();
}

void sweepLost(Sweep& sweep) {
  std::vector<std::uint64_t> epochs;
  {
    Query query = sweep.step.db.query("SELECT epoch FROM ended_life ORDER BY epoch LIMIT 16 FOR UPDATE SKIP LOCKED");
    while (query.next()) epochs.push_back(query.count(0));
  }
  const std::size_t before = sweep.swept.stopped.size();
  for (const std::uint64_t epoch : epochs) {
    const std::size_t done = sweep.swept.stopped.size() - before;
    if (done >= sweep.max) {
      sweep.swept.more = true;
      return;
    }
    recoverJobs(sweep, epoch, sweep.max - done);
  }
}

/// Deletes the deliveries that ended a day ago.
void dropDeliveries(Sweep& sweep) {
  std::vector<SettledRow> rows;
  {
    Query query = sweep.step.db.query(
        "SELECT num, endpoint FROM delivery WHERE settled_at <= ? ORDER BY settled_at LIMIT ? FOR UPDATE SKIP LOCKED");
    query.bind(sweep.step.now - kDeliveryRecordLife, sweep.max);
    while (query.next()) rows.push_back({query.integer(0), query.text(1)});
  }
  if (rows.size() == sweep.max) sweep.swept.more = true;
  for (const SettledRow& row : rows) dropDelivery(sweep.step, row);
}

void dropOutlived(Sweep& sweep) {
  constexpr Millis kDay{86'400'000};
  sweep.drop("DELETE FROM idempotency WHERE expires_at <= ? ORDER BY expires_at LIMIT ?", Millis(0));
  dropDeliveries(sweep);
  sweep.drop("DELETE FROM record_removed WHERE removed_at <= ? ORDER BY removed_at LIMIT ?", kDay);
  sweep.drop("DELETE FROM node WHERE alive = 0 AND last_beat <= ? ORDER BY name LIMIT ?", kDay);
}

}  // namespace

SweepResult Leases::sweep(std::size_t max) {
  if (glances_.read(kOldGlance).sweepAt > clock_.now()) return {};
  return writer_.write([&](Step& step) {
    Sweep sweep{step, max, reports_};
    sweep.freeExpired(expiredRows(sweep));
    endOverdue(sweep);
    endSilentLives(step);
    sweepLost(sweep);
    dropOutlived(sweep);
    if (!removeDiscardedChunks(step)) sweep.swept.more = true;
    return sweep.result();
  });
}

SweepResult Leases::giveBack(std::span<const ReturnedJob> jobs) {
  if (jobs.empty()) return {};
  return writer_.write([&](Step& step) { return sql::giveBack(step, jobs, reports_); });
}

}  // namespace jobq::mysql

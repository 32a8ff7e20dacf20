// The end of overdue jobs and of jobs with a lost worker, and the removal of discarded chunks (`job_rows.h`). Each task
// reads the front of an index and changes at most `max` rows, so a sweep is short however many rows the storage holds.
// Rows that another transaction has locked are passed over: a sweep of another node or a report is at work there.
#include <set>

#include "delivery_rows.h"
#include "job_rows.h"
#include "leases.h"
#include "lives.h"

namespace jobq::mysql {
namespace {

struct Sweep {
  Step& step;
  std::size_t max;
  SweepResult& swept;
  const sql::ReportsUnderWay& reports;
  std::set<EndpointId> requeuedAt;

  /// Returns the rows of the query.
  std::vector<JobRow> due(Query& query) {
    auto rows = collectRows(query);
    if (rows.size() == max) swept.more = true;
    return rows;
  }

  /// Returns the rows of running jobs, except jobs with a reported outcome that waits for its commit.
  std::vector<JobRow> dueRunning(Query& query) {
    const bool hadMore = swept.more;
    std::vector<JobRow> rows = due(query);
    std::erase_if(rows, [this](const JobRow& row) { return reports.contains({row.id, row.attempt}); });
    if (rows.empty()) swept.more = hadMore;  // a second sweep at once would find the same rows
    return rows;
  }

  /// Deletes up to `max` rows without naming a job in the result.
  void drop(const char* sql, Millis life) {
    if (step.db.query(sql).bind(step.now - life, max).run() >= max) swept.more = true;
  }
};

void freeExpired(Sweep& sweep) {
  Query query = sweep.step.db.query("SELECT " JOBQ_MYSQL_ROW
                                    " FROM job FORCE INDEX (job_expiry) WHERE expires_at <= ? ORDER BY expires_at "
                                    "LIMIT ? FOR UPDATE SKIP LOCKED");
  query.bind(sweep.step.now, sweep.max);
  for (const JobRow& row : sweep.due(query)) {
    if (sweep.step.rowsLeft <= 0) {
      sweep.swept.more = true;
      return;
    }
    if (row.state == JobState::inProgress) sweep.swept.stopped.push_back({row.id, row.attempt});
    if (row.state == JobState::inQueue) sweep.swept.expired.push_back({row.endpoint, row.id});
    removeJob(sweep.step, row);
    ++sweep.swept.removed;
  }
}

void endOverdue(Sweep& sweep) {
  Query query = sweep.step.db.query("SELECT " JOBQ_MYSQL_ROW
                                    " FROM running_job FORCE INDEX (running_until) STRAIGHT_JOIN job "
                                    "ON job.num = running_job.num WHERE running_job.deadline <= ? AND "
                                    "job.expires_at > ? ORDER BY running_job.deadline LIMIT ? FOR UPDATE SKIP LOCKED");
  query.bind(sweep.step.now, sweep.step.now, sweep.max);
  for (const JobRow& row : sweep.dueRunning(query)) {
    const std::string error = overTimeError(row.executionTimeout);
    sweep.swept.stopped.push_back({row.id, row.attempt});
    sweep.swept.finished.push_back({row.endpoint, row.id});
    end(sweep.step, row, Trigger::timeOut, {error, ""});
  }
}

/// Takes back a running job with a lost worker.
void loseOne(Step& step, JobRow row, SweepResult& swept, std::set<EndpointId>& requeuedAt) {
  swept.stopped.push_back({row.id, row.attempt});
  ++row.losses;
  ++row.retries;
  step.counters.retried(row.endpoint);
  if (row.losses < row.maxAttempts) {
    returnToQueue(step, row, Trigger::lose, row.losses, row.retries);
    requeuedAt.insert(row.endpoint);
    return;
  }
  const std::string error = "its worker was lost " + std::to_string(row.losses) +
                            (row.losses == 1 ? " time" : " times") + ", maxAttempts is " +
                            std::to_string(row.maxAttempts);
  swept.finished.push_back({row.endpoint, row.id});
  end(step, row, Trigger::loseLast, {error, ""});
}

/// Takes back at most `most` jobs of a life. The note of a life without a running job is deleted.
void recoverJobs(Sweep& sweep, std::uint64_t epoch, std::size_t most) {
  std::vector<JobRow> rows;
  {
    Query query = sweep.step.db.query("SELECT " JOBQ_MYSQL_ROW
                                      " FROM running_job FORCE INDEX (running_of_life) STRAIGHT_JOIN job "
                                      "ON job.num = running_job.num WHERE running_job.epoch = ? AND "
                                      "job.expires_at > ? ORDER BY running_job.num LIMIT ? FOR UPDATE SKIP LOCKED");
    query.bind(epoch, sweep.step.now, most);
    rows = sweep.dueRunning(query);
  }
  for (JobRow& row : rows) loseOne(sweep.step, std::move(row), sweep.swept, sweep.requeuedAt);
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
    SweepResult swept;
    Sweep sweep{step, max, swept, reports_, {}};
    freeExpired(sweep);
    endOverdue(sweep);
    endSilentLives(step);
    sweepLost(sweep);
    dropOutlived(sweep);
    if (!removeDiscardedChunks(step)) swept.more = true;
    swept.requeuedAt.assign(sweep.requeuedAt.begin(), sweep.requeuedAt.end());
    return swept;
  });
}

SweepResult Leases::giveBack(std::span<const ReturnedJob> jobs) {
  if (jobs.empty()) return {};
  return writer_.write([&](Step& step) {
    SweepResult done;
    std::set<EndpointId> requeuedAt;
    for (const ReturnedJob& job : jobs) {
      auto row = lockHeld(step, job.lease);
      if (!row || reports_.contains(job.lease)) continue;
      if (job.isLoss) {
        loseOne(step, std::move(*row), done, requeuedAt);
      } else {
        done.stopped.push_back(job.lease);
        requeuedAt.insert(row->endpoint);
        returnToQueue(step, *row, Trigger::release, row->losses, row->retries);
      }
    }
    done.requeuedAt.assign(requeuedAt.begin(), requeuedAt.end());
    return done;
  });
}

}  // namespace jobq::mysql

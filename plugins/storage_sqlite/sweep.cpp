// The end of overdue jobs and of jobs with a lost worker, and the removal of discarded chunks (`job_rows.h`). Each task
// reads the front of an index, or the few jobs that are not listed (`job_listing.h`), and changes at most `max` rows,
// so a sweep is short however many rows the storage holds. A sweep without a backlog deletes the files of removed
// bodies (`body_sweep.h`) and returns free space to the file system (`shrink.h`).
#include <exception>
#include <iterator>
#include <list>
#include <set>
#include <utility>
#include <vector>

#include "job_rows.h"
#include "leases.h"

namespace jobq::sqlite {
namespace {

struct Sweep {
  Step& step;
  std::size_t max;
  SweepResult& swept;
  const sql::ReportsUnderWay& reports;
  std::set<EndpointId> requeuedAt;

  /// Returns the rows found by `sql`; ?1 is the present moment, ?2 the bound.
  std::vector<JobRow> due(const char* sql) {
    Query query = step.db.query(sql);
    query.bind(step.now, max);
    auto rows = collectRows(query);
    if (rows.size() == max) swept.more = true;
    return rows;
  }

  /// Returns true if the outcome of the job was reported and waits for its commit.
  bool isReported(const JobRow& row) const { return reports.contains({row.id, row.attempt}); }

  /// Returns the due rows of running jobs, except jobs with a reported outcome.
  std::vector<JobRow> dueRunning(const char* sql) {
    const bool hadMore = swept.more;
    std::vector<JobRow> rows = due(sql);
    std::erase_if(rows, [this](const JobRow& row) { return isReported(row); });
    if (rows.empty()) swept.more = hadMore;  // a second sweep at once would find the same rows
    return rows;
  }

  /// Deletes up to `max` rows without naming a job in the result.
  void drop(const char* sql, Millis life) {
    Query query = step.db.query(sql);
    query.bind(step.now - life, max);
    if (query.run() >= max) swept.more = true;
  }
};

/// Returns at most `max` expired jobs, listed ones and others (`job_listing.h`).
std::vector<JobRow> expiredRows(Sweep& sweep) {
  std::vector<JobRow> rows = sweep.due("SELECT " JOBQ_ROW_COLUMNS
                                       " FROM job INDEXED BY job_expiry WHERE listed = 1 AND expires_at <= ?1 "
                                       "ORDER BY expires_at LIMIT ?2");
  Query query = sweep.step.db.query(
      "SELECT " JOBQ_ROW_COLUMNS " FROM job NOT INDEXED WHERE num > ?3 AND listed = 0 AND expires_at <= ?1 LIMIT ?2");
  const std::size_t left = sweep.max - rows.size();
  query.bind(sweep.step.now, left, sweep.step.listing.listed());
  std::vector<JobRow> unlisted = collectRows(query);
  if (unlisted.size() == left) sweep.swept.more = true;
  std::move(unlisted.begin(), unlisted.end(), std::back_inserter(rows));
  return rows;
}

void freeExpired(Sweep& sweep) {
  for (const JobRow& row : expiredRows(sweep)) {
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
    const std::string error = overTimeError(row->executionTimeout);
    sweep.swept.stopped.push_back({row->id, row->attempt});
    sweep.swept.finished.push_back({row->endpoint, row->id});
    end(sweep.step, *row, Trigger::timeOut, {error, nullptr});
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
  end(step, row, Trigger::loseLast, {error, nullptr});
}

void sweepLost(Sweep& sweep) {
  for (JobRow& row : sweep.dueRunning(
           "SELECT " JOBQ_ROW_COLUMNS
           " FROM job INDEXED BY job_lost WHERE holder = 0 AND deadline > ?1 AND expires_at > ?1 LIMIT ?2")) {
    loseOne(sweep.step, std::move(row), sweep.swept, sweep.requeuedAt);
  }
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
          {"the input of the job cannot be read; the log of the server has the reason", nullptr});
    } else {
      returnToQueue(sweep.step, *row, Trigger::release, row->losses, row->retries);
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
      SweepResult swept;
      Sweep sweep{step, max, swept, reports_, {}};
      if (removes) freeExpired(sweep);
      endLeftOut(sweep, unreadable);
      endOverdue(sweep);
      sweepLost(sweep);
      if (removes) dropOutlived(sweep);
      if (!removeDiscardedChunks(step)) swept.more = true;
      swept.requeuedAt.assign(sweep.requeuedAt.begin(), sweep.requeuedAt.end());
      return swept;
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
      SweepResult swept;
      Sweep sweep{step, jobs.size(), swept, reports_, {}};
      endLeftOut(sweep, jobs);
      return true;
    });
  } catch (const std::exception&) {
    // The storage refuses writes, or memory is short: the next start counts the jobs as lost.
  }
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

}  // namespace jobq::sqlite

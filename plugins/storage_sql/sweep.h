// The steps that take jobs from their workers or out of the storage: the parts of a sweep, giveBack(), and the removal
// of discarded chunks. lockHeld(), collectRows(), end(), returnToQueue() and removeJob() are functions of `job_rows.h`
// of a storage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"
#include "jobq/transitions.h"
#include "storage_sql/reports_under_way.h"

namespace jobq::sql {

/// A sweep in a step: changes at most `max` rows of a kind. Not thread-safe.
template <class Step>
struct Sweep {
  Step& step;
  std::size_t max;
  const ReportsUnderWay& reports;
  SweepResult swept{};
  std::set<EndpointId> requeuedAt{};

  /// Returns the rows that the statement finds with the values. The statement returns at most `max` rows.
  template <class... Values>
  auto due(const char* sql, const Values&... values) {
    auto query = step.db.query(sql);
    auto rows = collectRows(query.bind(values...));
    if (rows.size() == max) swept.more = true;
    return rows;
  }

  /// Returns true if the outcome of the job was reported and waits for a commit.
  template <class JobRow>
  bool isReported(const JobRow& row) const {
    return reports.contains({row.id, row.attempt});
  }

  /// Returns the rows of running jobs, except jobs with a reported outcome.
  template <class... Values>
  auto dueRunning(const char* sql, const Values&... values) {
    const bool hadMore = swept.more;
    auto rows = due(sql, values...);
    std::erase_if(rows, [this](const auto& row) { return this->isReported(row); });
    if (rows.empty()) swept.more = hadMore;  // a second sweep at once would find the same rows
    return rows;
  }

  /// Deletes up to `max` rows older than `life`, without naming a job in the result.
  void drop(const char* sql, Millis life) {
    if (step.db.query(sql).bind(step.now - life, max).run() >= max) swept.more = true;
  }

  /// Removes expired jobs, as far as the step may remove rows.
  template <class JobRow>
  void freeExpired(const std::vector<JobRow>& rows) {
    for (const JobRow& row : rows) {
      if (step.rowsLeft <= 0) {
        swept.more = true;
        return;
      }
      if (row.state == JobState::inProgress) swept.stopped.push_back({row.id, row.attempt});
      if (row.state == JobState::inQueue) swept.expired.push_back({row.endpoint, row.id});
      removeJob(step, row);
      ++swept.removed;
    }
  }

  /// Ends a running job at its execution timeout.
  template <class JobRow>
  void endOverdue(const JobRow& row) {
    const std::string error = overTimeError(row.executionTimeout);
    swept.stopped.push_back({row.id, row.attempt});
    swept.finished.push_back({row.endpoint, row.id});
    end(step, row, Trigger::timeOut, {error});
  }

  /// Takes back a running job with a lost worker.
  template <class JobRow>
  void loseJob(JobRow row) {
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
    end(step, row, Trigger::loseLast, {error});
  }

  /// Returns a running job to the queue, without a counted loss.
  template <class JobRow>
  void release(const JobRow& row) {
    requeuedAt.insert(row.endpoint);
    returnToQueue(step, row, Trigger::release, row.losses, row.retries);
  }

  SweepResult result() {
    swept.requeuedAt.assign(requeuedAt.begin(), requeuedAt.end());
    return std::move(swept);
  }
};

/// The step of giveBack().
template <class Step>
SweepResult giveBack(Step& step, std::span<const ReturnedJob> jobs, const ReportsUnderWay& reports) {
  Sweep<Step> sweep{step, jobs.size(), reports};
  for (const ReturnedJob& job : jobs) {
    const auto row = lockHeld(step, job.lease);
    if (!row || sweep.isReported(*row)) continue;
    if (job.isLoss) {
      sweep.loseJob(*row);
    } else {
      sweep.swept.stopped.push_back(job.lease);
      sweep.release(*row);
    }
  }
  return sweep.result();
}

/// The discarded chunks of a job, from number `from` up to number `to`, without `to`.
struct DiscardedChunks {
  std::int64_t num;  // of the job
  std::int64_t from;
  std::int64_t to;
};

/// Returns the chunks of the first note. A job in a note may have been removed, or may have new chunks.
template <class Notes, class Step>
std::optional<DiscardedChunks> findDiscarded(Step& step) {
  auto note = step.db.query(Notes::kFirst);
  if (!note.next()) return std::nullopt;
  DiscardedChunks discarded{note.integer(0), 0, note.integer(1)};
  auto job = step.db.query(Notes::kChunksOfJob);
  if (job.bind(discarded.num).next()) discarded.from = job.integer(0);
  discarded.to = std::max(discarded.from, discarded.to);
  return discarded;
}

/// Removes discarded chunks that a note names, at most `step.rowsLeft`, by the statements of `Notes`. Returns false if
/// there are more.
template <class Notes, class Step>
bool removeNotedChunks(Step& step) {
  while (const auto discarded = findDiscarded<Notes>(step)) {
    if (step.rowsLeft <= 0) return false;
    const std::int64_t from = std::max(discarded->from, discarded->to - step.rowsLeft);
    step.rowsLeft -= discarded->to - from;
    step.db.query(Notes::kRemoveChunks).bind(discarded->num, from).run();
    const auto name = Notes::nameOf(discarded->num);
    if (from == discarded->from) {
      step.db.query(Notes::kRemove).bind(name).run();
    } else {
      step.db.query(Notes::kMove).bind(from, name).run();
    }
  }
  return true;
}

}  // namespace jobq::sql

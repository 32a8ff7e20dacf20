// The steps of changes by a caller. lockRow(), end(), discardReports(), collectRows() and removeJob() are functions of
// `job_rows.h` of a storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/transitions.h"

namespace jobq::sql {

/// The step of cancel().
template <class Step>
CancelResult cancelJob(Step& step, const JobKey& key) {
  const auto row = lockRow(step, key);
  if (!row) return NotFound{};
  if (row->state != JobState::cancelled) {
    if (!next(row->state, Trigger::cancel)) return WrongState{row->state};
    end(step, *row, Trigger::cancel, {});
  }
  return Cancelled{{row->id, row->attempt}};
}

/// The step of requeue(). Calls `change(row, state)` to put the job back into the queue in the state.
template <class Step, class Change>
RequeueResult requeueJob(Step& step, const JobKey& key, std::uint32_t failedAttempt, Change&& change) {
  auto row = lockRow(step, key);
  if (!row) return NotFound{};
  if (row->attempt > failedAttempt) return Requeued{};  // the call is repeated
  const auto to = next(row->state, Trigger::retry);
  if (!to || row->attempt < failedAttempt) return WrongState{row->state};
  change(*row, *to);
  discardReports(step, *row);
  step.counters.moved(row->endpoint, row->state, *to, row->low);
  step.counters.retried(row->endpoint);
  return Requeued{};
}

/// Result of one step of a purge.
struct Purged {
  std::size_t jobs = 0;
  bool more = false;
};

/// Calls `purgeSome`, the write of one step of a purge, until no job is left. Returns the number of removed jobs.
template <class PurgeSome>
std::size_t purgeAll(PurgeSome&& purgeSome) {
  for (std::size_t all = 0;;) {
    const Purged purged = purgeSome();
    all += purged.jobs;
    if (!purged.more) return all;
  }
}

/// The step of remove() for an endpoint: removes up to `batch` jobs, then idempotency keys and groups of the queue, by
/// the statements of `Rows`. Returns the number of removed rows, or `batch` if there are more.
template <class Rows, class Step>
std::size_t removeOfEndpoint(Step& step, std::string_view endpoint, std::size_t batch) {
  const auto jobsOf = [&] {
    auto query = step.db.query(Rows::kJobsOfEndpoint);
    return collectRows(query.bind(endpoint, batch));
  };
  std::size_t removed = 0;
  for (const auto& job : jobsOf()) {
    if (step.rowsLeft <= 0) return batch;
    removeJob(step, job);
    ++removed;
  }
  if (removed < batch) removed += step.db.query(Rows::kRemoveKeys).bind(endpoint, batch - removed).run();
  if (removed < batch) removed += step.db.query(Rows::kRemoveGroups).bind(endpoint, batch - removed).run();
  return removed;
}

}  // namespace jobq::sql

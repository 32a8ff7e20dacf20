// The end of overdue jobs and of jobs with a lost worker. Each task reads the front of an ordered index, so a sweep is
// short however many jobs the storage holds.
#include "memory_stores.h"

namespace jobq::memory {
namespace {

/// Returns the due jobs of `index`, at most `max`. Expired jobs, left by a bounded sweep for the next sweep, are
/// skipped.
std::vector<Row*> due(const RowsByTime& index, Instant now, std::size_t max) {
  std::vector<Row*> rows;
  for (auto at = index.begin(); at != index.end() && at->first <= now && rows.size() < max; ++at) {
    if (!at->second->expired(now)) rows.push_back(at->second);
  }
  return rows;
}

/// Returns at most `max` jobs whose holder's life has ended. Jobs past their execution timeout, left by a bounded sweep
/// for the next sweep, are skipped. Reads all running jobs, and only after the end of a life.
std::vector<Row*> lostRows(const RowsByTime& running, Lives& lives, Instant now, std::size_t max) {
  std::vector<Row*> rows;
  if (!lives.mayHaveLostJobs()) return rows;
  for (const auto& [deadline, row] : running) {
    if (rows.size() == max) return rows;
    if (deadline > now && !row->expired(now) && !lives.isAlive(row->run->holder)) rows.push_back(row);
  }
  lives.noteNoLostJobs();
  return rows;
}

JobKey keyOf(const Row& row) { return {row.spec->endpoint, row.spec->id}; }

}  // namespace

void Leases::freeExpired(Instant now, std::size_t max, Rows& dead, SweepResult& swept) {
  while (swept.removed < max && !s_.byExpiry.empty() && s_.byExpiry.begin()->first <= now) {
    Row& row = *s_.byExpiry.begin()->second;
    if (row.state == JobState::inProgress) swept.stopped.push_back({row.spec->id, row.attempt});
    if (row.state == JobState::inQueue) swept.expired.push_back(keyOf(row));
    s_.removeRow(row, dead);
    ++swept.removed;
  }
}

void Leases::timeOut(Row& row, Instant now, SweepResult& swept) {
  swept.stopped.push_back({row.spec->id, row.attempt});
  swept.finished.push_back(keyOf(row));
  row.run->error = overTimeError(row.spec->policy.executionTimeout);
  s_.end(row, Trigger::timeOut, now);
}

void Leases::loseOne(Row& row, Instant now, Lost& lost) {
  SweepResult& swept = lost.swept;
  swept.stopped.push_back({row.spec->id, row.attempt});
  ++row.losses;
  ++row.retries;
  ++row.endpoint->retried;
  if (row.losses < row.spec->maxAttempts) {
    s_.sendBack(row, Trigger::lose, lost.discarded);
    lost.requeuedAt.insert(row.spec->endpoint);
    return;
  }
  swept.finished.push_back(keyOf(row));
  row.run->error = "its worker was lost " + std::to_string(row.losses) + (row.losses == 1 ? " time" : " times") +
                   ", maxAttempts is " + std::to_string(row.spec->maxAttempts);
  s_.end(row, Trigger::loseLast, now);
}

// A record replaced after its end has a later entry of its own.
std::size_t Leases::dropIdempotencyKeys(Instant now, std::size_t max) {
  std::size_t dropped = 0;
  for (; dropped < max && !s_.idempotencyEnds.empty() && s_.idempotencyEnds.front().endsAt <= now; ++dropped) {
    const State::IdempotencyEnd& end = s_.idempotencyEnds.front();
    const auto endpoint = s_.endpoints.find(end.endpoint);
    if (endpoint != s_.endpoints.end()) {
      const auto idempotency = endpoint->second.idempotencyKeys.find(end.key);
      if (idempotency != endpoint->second.idempotencyKeys.end() && idempotency->second.endsAt <= now) {
        endpoint->second.idempotencyKeys.erase(idempotency);
      }
    }
    s_.idempotencyEnds.pop_front();
  }
  return dropped;
}

SweepResult Leases::sweep(std::size_t max) {
  SweepResult swept;
  Rows dead;
  Lost lost{swept};
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  freeExpired(now, max, dead, swept);
  const auto overdue = due(s_.byDeadline, now, max);
  for (Row* row : overdue) timeOut(*row, now, swept);
  s_.lives.endOverdue(now);
  const auto orphans = lostRows(s_.byDeadline, s_.lives, now, max);
  for (Row* row : orphans) loseOne(*row, now, lost);
  const std::size_t idempotencyKeys = dropIdempotencyKeys(now, max);
  const std::size_t deliveries = s_.deliveries.dropOld(now, max);
  for (std::size_t done : {swept.removed, overdue.size(), orphans.size(), idempotencyKeys, deliveries}) {
    if (done >= max) swept.more = true;
  }
  swept.requeuedAt.assign(lost.requeuedAt.begin(), lost.requeuedAt.end());
  return swept;
}

SweepResult Leases::giveBack(std::span<const ReturnedJob> jobs) {
  SweepResult swept;
  Lost lost{swept};
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  for (const ReturnedJob& job : jobs) {
    Row* const row = s_.held(job.lease, now);
    if (row == nullptr) continue;
    if (job.isLoss) {
      loseOne(*row, now, lost);
      continue;
    }
    swept.stopped.push_back(job.lease);
    lost.requeuedAt.insert(row->spec->endpoint);
    s_.sendBack(*row, Trigger::release, lost.discarded);
  }
  swept.requeuedAt.assign(lost.requeuedAt.begin(), lost.requeuedAt.end());
  return swept;
}

}  // namespace jobq::memory

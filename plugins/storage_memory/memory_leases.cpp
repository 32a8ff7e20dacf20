#include <algorithm>
#include <utility>

#include "memory_faces.h"

namespace jobq::memory {

ClaimedJob Leases::take(Row& row, const WorkerId& worker, const Holder& holder, Instant now) {
  s_.takeFromLine(row);
  Job& job = row.job;
  job.state = *next(job.state, Trigger::claim);
  ++job.attempt;
  job.startedAt = now;
  job.workerId = worker;
  row.deadline = now + row.spec.policy.executionTimeout;
  s_.byDeadline.emplace(row.deadline, &row);
  if (holder.kind == Holder::Kind::timed) {
    row.lease = now + holder.lease;
    s_.byLease.emplace(*row.lease, &row);
  }
  ++s_.lines[job.endpoint].counts.inProgress;
  return ClaimedJob{{job.id, job.attempt},
                    job.endpoint,
                    worker,
                    row.spec.input,
                    row.spec.webhook,
                    row.spec.s3Config,
                    row.spec.policy,
                    job.submittedAt,
                    now,
                    std::min(row.deadline, job.expiresAt)};
}

std::vector<ClaimedJob> Leases::claim(std::span<const ClaimWant> wants, const Holder& holder) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  std::vector<ClaimedJob> claimed;
  for (const ClaimWant& want : wants) {
    const auto line = s_.lines.find(want.endpoint);
    if (line == s_.lines.end()) continue;
    for (const WorkerId& worker : want.workers) {
      if (line->second.waiting.empty()) break;
      claimed.push_back(take(*std::get<Row*>(*line->second.waiting.begin()), worker, holder, now));
    }
  }
  return claimed;
}

std::vector<LeaseState> Leases::renew(std::span<const LeaseRef> leases, Millis lease) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  std::vector<LeaseState> states;
  for (const LeaseRef& ref : leases) {
    if (Row* row = s_.held(ref)) {
      if (row->lease) {
        s_.byLease.erase({*row->lease, row});
        row->lease = now + lease;
        s_.byLease.emplace(*row->lease, row);
      }
      states.push_back(LeaseState::held);
      continue;
    }
    const auto found = s_.jobs.find(ref.job);
    const bool cancelled = found != s_.jobs.end() && found->second->job.state == JobState::cancelled &&
                           found->second->job.attempt == ref.attempt;
    states.push_back(cancelled ? LeaseState::cancelled : LeaseState::lost);
  }
  return states;
}

Fenced Leases::finish(const LeaseRef& lease, Outcome outcome) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  Row* row = s_.held(lease);
  if (row == nullptr) return Fenced::stale;
  s_.stopRunning(*row);
  if (auto* completed = std::get_if<Completed>(&outcome)) {
    row->job.output = std::move(completed->output);
    s_.end(*row, *next(row->job.state, Trigger::complete), now);
  } else {
    Failed& failed = std::get<Failed>(outcome);
    row->job.output = std::move(failed.output);
    row->job.error = std::move(failed.error);
    s_.end(*row, *next(row->job.state, Trigger::fail), now);
  }
  return Fenced::accepted;
}

Fenced Leases::progress(const LeaseRef& lease, std::string json) {
  Lock lock(s_.mutex);
  s_.retire();
  Row* row = s_.held(lease);
  if (row == nullptr) return Fenced::stale;
  row->job.progress = std::move(json);
  return Fenced::accepted;
}

std::size_t Leases::release(std::span<const LeaseRef> leases) {
  Lock lock(s_.mutex);
  s_.retire();
  std::size_t released = 0;
  for (const LeaseRef& ref : leases) {
    Row* row = s_.held(ref);
    if (row == nullptr) continue;
    s_.stopRunning(*row);
    s_.sendBack(*row);
    ++released;
  }
  return released;
}

void Leases::timeOut(Row& row, Instant now, Swept& swept) {
  swept.stopped.push_back({row.job.id, row.job.attempt});
  swept.finished.push_back({row.job.endpoint, row.job.id});
  s_.stopRunning(row);
  row.job.error = "the job ran longer than its execution timeout of " +
                  std::to_string(row.spec.policy.executionTimeout.count()) + " ms";
  s_.end(row, *next(row.job.state, Trigger::timeOut), now);
}

void Leases::lose(Row& row, Instant now, Swept& swept) {
  Job& job = row.job;
  swept.stopped.push_back({job.id, job.attempt});
  s_.stopRunning(row);
  ++job.losses;
  ++job.retries;
  ++s_.lines[job.endpoint].counts.retried;
  if (job.losses < row.spec.maxAttempts) {
    s_.sendBack(row);
    if (std::find(swept.requeuedAt.begin(), swept.requeuedAt.end(), job.endpoint) == swept.requeuedAt.end()) {
      swept.requeuedAt.push_back(job.endpoint);
    }
    return;
  }
  job.error =
      "its worker was lost " + std::to_string(job.losses) + " times, the limit of attempts: it may crash its worker";
  swept.finished.push_back({job.endpoint, job.id});
  s_.end(row, *next(job.state, Trigger::loseLast), now);
}

Swept Leases::sweep(std::size_t max) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  Swept swept = std::exchange(s_.unreported, {});
  for (std::size_t i = 0; i < max && !s_.byDeadline.empty() && s_.byDeadline.begin()->first <= now; ++i) {
    timeOut(*s_.byDeadline.begin()->second, now, swept);
  }
  for (std::size_t i = 0; i < max && !s_.byLease.empty() && s_.byLease.begin()->first <= now; ++i) {
    lose(*s_.byLease.begin()->second, now, swept);
  }
  swept.more = (!s_.byDeadline.empty() && s_.byDeadline.begin()->first <= now) ||
               (!s_.byLease.empty() && s_.byLease.begin()->first <= now);
  dropOldDeliveries(now);
  return swept;
}

// Settled deliveries stay for a day, and at most kMaxDeliveriesPerEndpoint of an endpoint; the oldest go first.
void Leases::dropOldDeliveries(Instant now) {
  std::map<EndpointId, std::vector<std::pair<std::uint64_t, std::string>>> settled;
  std::erase_if(s_.outbox, [now](const auto& entry) {
    return entry.second.delivery.state != DeliveryState::owed && entry.second.settledAt + kDeliveryRecordLife <= now;
  });
  for (const auto& [id, row] : s_.outbox) {
    if (row.delivery.state != DeliveryState::owed) settled[row.delivery.job.endpoint].emplace_back(row.sequence, id);
  }
  for (auto& [endpoint, rows] : settled) {
    if (rows.size() <= kMaxDeliveriesPerEndpoint) continue;
    std::sort(rows.begin(), rows.end());
    for (std::size_t i = 0; i + kMaxDeliveriesPerEndpoint < rows.size(); ++i) s_.outbox.erase(rows[i].second);
  }
}

}  // namespace jobq::memory

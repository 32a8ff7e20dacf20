#include "memory_state.h"

#include <algorithm>
#include <limits>

namespace jobq::memory {

Instant State::retire() {
  const Instant now = clock.now();
  while (!byExpiry.empty() && byExpiry.begin()->first <= now) {
    Row& row = *byExpiry.begin()->second;
    if (row.job.state == JobState::inProgress) unreported.stopped.push_back({row.job.id, row.job.attempt});
    ++unreported.removed;
    erase(row);
  }
  while (!promiseExpiry.empty() && promiseExpiry.begin()->first <= now) {
    promises.erase(promiseExpiry.begin()->second);
    promiseExpiry.erase(promiseExpiry.begin());
  }
  return now;
}

Row* State::find(const JobKey& key) {
  const auto found = jobs.find(key.id);
  if (found == jobs.end() || found->second->job.endpoint != key.endpoint) return nullptr;
  return found->second.get();
}

Row* State::held(const LeaseRef& lease) {
  const auto found = jobs.find(lease.job);
  if (found == jobs.end()) return nullptr;
  Row& row = *found->second;
  return row.job.state == JobState::inProgress && row.job.attempt == lease.attempt ? &row : nullptr;
}

void State::putInLine(Row& row) {
  Line& line = lines[row.job.endpoint];
  line.waiting.emplace(row.job.lowPriority, row.rank, row.arrival, &row);
  ++line.counts.inQueue;
  if (row.job.lowPriority) ++line.counts.inQueueLow;
}

void State::takeFromLine(Row& row) {
  Line& line = lines[row.job.endpoint];
  line.waiting.erase({row.job.lowPriority, row.rank, row.arrival, &row});
  --line.counts.inQueue;
  if (row.job.lowPriority) --line.counts.inQueueLow;
}

void State::stopRunning(Row& row) {
  byDeadline.erase({row.deadline, &row});
  if (row.lease) byLease.erase({*row.lease, &row});
  row.lease.reset();
  --lines[row.job.endpoint].counts.inProgress;
}

void State::end(Row& row, JobState state, Instant now) {
  Job& job = row.job;
  EndpointCounts& counts = lines[job.endpoint].counts;
  job.state = state;
  job.finishedAt = now;
  job.progress.clear();
  if (state == JobState::completed) ++counts.completed;
  if (state == JobState::failed || state == JobState::timedOut) ++counts.failed;
  if (!row.pinned) setExpiry(row, std::min(job.submittedAt + row.spec.policy.ttl, now + row.spec.retention));
  if (row.spec.webhook.empty()) return;
  const std::string id = job.id + "." + std::to_string(job.attempt);
  outbox[id] =
      OutboxRow{Delivery{id, DeliveryState::owed, row.spec.webhook, job, row.spec.input, now, {}}, ++sequence, {}};
  byDue.emplace(now, sequence, id);
}

void State::sendBack(Row& row) {
  row.job.state = JobState::inQueue;
  ++row.job.attempt;
  row.job.progress.clear();
  row.chunks.clear();
  row.taken = 0;
  putInLine(row);
}

void State::setExpiry(Row& row, Instant expiry) {
  byExpiry.erase({row.job.expiresAt, &row});
  row.job.expiresAt = expiry;
  byExpiry.emplace(expiry, &row);
}

void State::rankAnew(Row& row, const QueuePolicy& policy, Instant now) {
  Line& line = lines[row.job.endpoint];
  GroupState state;
  const std::string group = policy.group(row.spec);
  if (!group.empty()) {
    const auto last = line.lastRank.find(group);
    if (last != line.lastRank.end()) state.lastRank = last->second;
    for (const bool low : {false, true}) {
      const auto first = line.waiting.lower_bound({low, std::numeric_limits<std::int64_t>::min(), 0, nullptr});
      if (first == line.waiting.end() || std::get<0>(*first) != low) continue;
      state.lowestWaiting = std::min(state.lowestWaiting.value_or(std::get<1>(*first)), std::get<1>(*first));
    }
  }
  row.rank = policy.rank(row.spec, now, state);
  row.arrival = ++sequence;
  if (!group.empty()) line.lastRank[group] = row.rank;
}

void State::erase(Row& row) {
  Line& line = lines[row.job.endpoint];
  if (row.job.state == JobState::inQueue) takeFromLine(row);
  if (row.job.state == JobState::inProgress) stopRunning(row);
  byExpiry.erase({row.job.expiresAt, &row});
  line.rows.erase(row.sequence);
  const JobId id = row.job.id;  // the key must outlive the row it names
  jobs.erase(id);
}

}  // namespace jobq::memory

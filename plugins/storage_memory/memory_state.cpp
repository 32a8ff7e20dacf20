#include "memory_state.h"

#include <algorithm>

#include "memory_fencing.h"

namespace jobq::memory {

Row* State::find(std::string_view id, Instant now) {
  const auto at = byId.find(id);
  return at == byId.end() || at->second->expired(now) ? nullptr : &*at->second;
}

Row* State::find(const JobKey& key, Instant now) {
  Row* row = find(key.id, now);
  return row == nullptr || row->spec->endpoint != key.endpoint ? nullptr : row;
}

Row* State::held(const LeaseRef& lease, Instant now) {
  Row* row = find(lease.job, now);
  return row == nullptr || row->state != JobState::inProgress || !isCurrentAttempt(*row, lease) ? nullptr : row;
}

Row* State::head(Queue& queue, Instant now) {
  while (!queue.empty()) {
    Row& row = *queue.begin()->second;
    if (!row.expired(now)) return &row;
    dequeue(row);
  }
  return nullptr;
}

void State::enqueue(Row& row) {
  row.endpoint->queues[row.spec->policy.lowPriority].emplace(std::pair(row.rank, row.arrival), &row);
  row.isQueued = true;
}

void State::dequeue(Row& row) {
  if (row.isQueued) row.endpoint->queues[row.spec->policy.lowPriority].erase({row.rank, row.arrival});
  row.isQueued = false;
}

std::int64_t State::rankOf(const JobSpec& job, Endpoint& endpoint, const QueuePolicy& policy, Instant now) {
  GroupState state;
  const std::string group = policy.group(job);
  if (group.empty()) return policy.rank(job, now, state);

  const auto last = endpoint.lastRanks.find(group);
  if (last != endpoint.lastRanks.end()) state.lastRank = last->second;
  if (const Row* first = head(endpoint.queues[job.policy.lowPriority], now)) state.lowestWaiting = first->rank;
  const std::int64_t rank = policy.rank(job, now, state);
  endpoint.lastRanks[group] = rank;
  return rank;
}

void State::setExpiry(Row& row, Instant expiry) {
  // Most jobs live equally long, so a new expiry usually goes to the end. The entry moves without new memory.
  auto entry = byExpiry.extract({row.expiresAt, &row});
  if (entry.empty()) {
    byExpiry.emplace_hint(byExpiry.end(), expiry, &row);
  } else {
    entry.value() = {expiry, &row};
    byExpiry.insert(byExpiry.end(), std::move(entry));
  }
  row.expiresAt = expiry;
}

void State::stopRunning(Row& row) {
  byDeadline.erase({row.run->deadline, &row});
  --row.endpoint->inProgress;
}

void State::end(Row& row, Trigger trigger, Instant now) {
  const JobState to = next(row.state, trigger).value();
  if (!row.run) row.run = std::make_unique<Run>();
  if (row.state == JobState::inProgress) stopRunning(row);
  dequeue(row);
  row.state = to;
  row.run->finishedAt = now;
  row.run->progress.clear();
  if (to == JobState::completed) ++row.endpoint->completed;
  if (to == JobState::failed || to == JobState::timedOut) ++row.endpoint->failed;
  if (!row.expiryFixed) {
    setExpiry(row, expiryAfterEnd(to, now, row.expiresAt, row.spec->retention, row.spec->retentionFailed));
  }
  if (!row.spec->webhook.empty()) deliveries.owe(row, now);
}

void State::sendBack(Row& row, Trigger trigger, DiscardedChunks& discarded) {
  const JobState to = next(row.state, trigger).value();
  // Steps that need memory come first: without memory the job does not change.
  if (!row.run->chunks.empty()) discarded.emplace_back();
  enqueue(row);
  stopRunning(row);
  row.state = to;
  ++row.attempt;
  row.run->progress.clear();
  if (!row.run->chunks.empty()) discarded.back().swap(row.run->chunks);
  row.run->taken = 0;
  row.run->takenBy = 0;
}

void State::removeRow(Row& row, Rows& dead) {
  if (row.state == JobState::inProgress) stopRunning(row);
  dequeue(row);
  byExpiry.erase({row.expiresAt, &row});
  const auto at = byId.find(row.spec->id);
  const Rows::iterator self = at->second;
  byId.erase(at);
  dead.splice(dead.end(), row.endpoint->jobs, self);
}

}  // namespace jobq::memory

#include "job_model.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace jobq::model {

std::int64_t JobModel::rankOf(const JobSpec& spec, const QueuePolicy& policy) {
  const std::string group = policy.group(spec);
  if (group.empty()) return policy.rank(spec, state_.now, {});
  GroupState state;
  const auto last = state_.lastRanks.find({spec.endpoint, group});
  if (last != state_.lastRanks.end()) state.lastRank = last->second;
  for (const Entry& entry : state_.entries) {
    const Job& job = entry.job;
    if (job.endpoint != spec.endpoint || job.state != JobState::inQueue || job.expiresAt <= state_.now) continue;
    if (job.lowPriority != spec.policy.lowPriority) continue;
    state.lowestWaiting = std::min(state.lowestWaiting.value_or(entry.rank), entry.rank);
  }
  return state_.lastRanks[{spec.endpoint, group}] = policy.rank(spec, state_.now, state);
}

InsertResult JobModel::insert(JobSpec spec, const QueuePolicy& policy, const std::optional<Idempotency>& idempotency) {
  if (idempotency) {
    if (const auto first = findByIdempotencyKey(spec.endpoint, spec.apiKeyId, *idempotency)) {
      const auto* job = std::get_if<Duplicate>(&*first);
      if (job == nullptr) return KeyConflict{};
      if (job->id == spec.id) return Inserted{};
      return *job;
    }
  }
  if (state_.find(spec.id) != nullptr) return Inserted{};  // the player repeats a call with its arguments
  if (idempotency) {
    const std::tuple key(spec.endpoint, spec.apiKeyId, idempotency->key);
    state_.idempotencyKeys[key] = {*idempotency, spec.id, state_.now + kIdempotencyLife};
  }
  Entry entry;
  entry.rank = rankOf(spec, policy);
  entry.arrival = ++state_.arrivals;
  entry.job.id = spec.id;
  entry.job.endpoint = spec.endpoint;
  entry.job.apiKeyId = spec.apiKeyId;
  entry.job.lowPriority = spec.policy.lowPriority;
  entry.job.submittedAt = entry.job.queuedAt = state_.now;
  entry.job.expiresAt = state_.now + spec.policy.ttl;
  entry.spec = std::move(spec);
  state_.entries.push_back(std::move(entry));
  return Inserted{};
}

std::optional<IdempotencyRecord> JobModel::findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                                const Idempotency& idempotency) const {
  const auto known =
      state_.idempotencyKeys.find(std::tuple(EndpointId(endpoint), std::string(apiKeyId), idempotency.key));
  if (known == state_.idempotencyKeys.end() || known->second.endsAt <= state_.now) return std::nullopt;
  if (known->second.words.bodyHash != idempotency.bodyHash) return KeyConflict{};
  return Duplicate{known->second.job};
}

std::optional<Job> JobModel::find(const JobKey& key, std::uint64_t mostBytes, JobExtent extent) const {
  const Entry* entry = state_.find(key);
  if (entry == nullptr) return std::nullopt;
  Job job = entry->job;
  if (extent == JobExtent::input) job.input = entry->spec.input;
  boundBodies(job, mostBytes);
  return job;
}

CancelResult JobModel::cancel(const JobKey& key) {
  Entry* entry = state_.find(key);
  if (entry == nullptr) return NotFound{};
  if (entry->job.state != JobState::cancelled) {
    if (!next(entry->job.state, Trigger::cancel)) return WrongState{entry->job.state};
    state_.end(*entry, Trigger::cancel, "", "");
  }
  return Cancelled{{key.id, entry->job.attempt}};
}

RequeueResult JobModel::requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) {
  Entry* entry = state_.find(key);
  if (entry == nullptr) return NotFound{};
  Job& job = entry->job;
  if (job.attempt > failedAttempt) return Requeued{};
  const auto to = next(job.state, Trigger::retry);
  if (!to || job.attempt < failedAttempt) return WrongState{job.state};
  if (!entry->expiryFixed) {
    const Instant begin = entry->spec.retentionFailed ? state_.now : job.submittedAt;
    job.expiresAt = begin + entry->spec.policy.ttl;
  }
  JobSpec again = entry->spec;
  again.policy.ttl = job.expiresAt - state_.now;
  entry->rank = rankOf(again, policy);  // the job itself is not queued yet
  entry->arrival = ++state_.arrivals;
  entry->chunks.clear();
  entry->taken = 0;
  entry->takenBy = 0;
  job.state = *to;
  job.queuedAt = state_.now;
  ++job.attempt;
  ++job.retries;
  job.losses = 0;
  job.startedAt.reset();
  job.finishedAt.reset();
  job.workerId.clear();
  job.output.clear();
  job.error.clear();
  ++state_.counters[job.endpoint].retried;
  return Requeued{};
}

std::size_t JobModel::purgeQueued(std::string_view endpoint) {
  const std::size_t before = state_.entries.size();
  state_.removeIf([&](const Entry& entry) {
    const Job& job = entry.job;
    return job.endpoint == endpoint && job.state == JobState::inQueue && job.expiresAt > state_.now;
  });
  return before - state_.entries.size();
}

std::optional<Instant> JobModel::setTtl(const JobKey& key, Millis ttl) {
  Entry* entry = state_.find(key);
  if (entry == nullptr) return std::nullopt;
  entry->expiryFixed = true;
  entry->job.expiresAt = expiryByTtl(entry->job.submittedAt, entry->job.expiresAt, state_.now, ttl);
  return entry->job.expiresAt;
}

JobPage JobModel::list(const JobFilter& filter, const PageWindow& window) const {
  JobPage page;
  std::size_t passed = 0;
  for (auto entry = state_.entries.rbegin(); entry != state_.entries.rend(); ++entry) {
    Job job = entry->job;
    if (job.endpoint != filter.endpoint || job.expiresAt <= state_.now) continue;
    if (filter.state && job.state != *filter.state) continue;
    ++page.total;
    if (passed++ < window.offset || page.jobs.size() == window.limit) continue;
    if (!filter.matches(job.id, job.apiKeyId)) continue;
    job.output.clear();
    job.progress.clear();
    job.error = listedError(job.error);
    page.jobs.push_back(std::move(job));
  }
  return page;
}

EndpointCounts JobModel::counts(std::string_view endpoint) const {
  EndpointCounts counts;
  for (const Entry& entry : state_.entries) {
    if (entry.job.endpoint != endpoint || entry.job.expiresAt <= state_.now) continue;
    if (entry.job.state == JobState::inProgress) ++counts.inProgress;
    if (entry.job.state != JobState::inQueue) continue;
    ++counts.inQueue;
    if (entry.job.lowPriority) ++counts.inQueueLow;
  }
  const std::vector<const Entry*> queue = state_.queue(endpoint);
  if (!queue.empty() && !queue.front()->job.lowPriority) counts.headWait = state_.now - queue.front()->job.queuedAt;
  const auto since = state_.counters.find(endpoint);
  if (since == state_.counters.end()) return counts;
  counts.completed = since->second.completed;
  counts.failed = since->second.failed;
  counts.retried = since->second.retried;
  return counts;
}

std::size_t JobModel::remove(std::string_view endpoint) {
  const std::size_t before = state_.entries.size();
  state_.removeIf([&](const Entry& entry) { return entry.job.endpoint == endpoint; });
  const auto ofEndpoint = [&](const auto& item) { return std::get<0>(item.first) == endpoint; };
  const std::size_t records =
      std::erase_if(state_.lastRanks, ofEndpoint) + std::erase_if(state_.idempotencyKeys, ofEndpoint);
  state_.counters.erase(EndpointId(endpoint));
  return before - state_.entries.size() + records;
}

}  // namespace jobq::model

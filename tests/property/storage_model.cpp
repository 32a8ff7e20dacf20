#include "storage_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "testkit/plain_receiver_names.h"

namespace jobq::model {

const Entry* StorageModel::at(std::string_view id) const {
  for (const Entry& entry : entries_) {
    if (entry.job.id == id && entry.job.expiresAt > now) return &entry;
  }
  return nullptr;
}

Entry* StorageModel::at(std::string_view id) { return const_cast<Entry*>(std::as_const(*this).at(id)); }

const Entry* StorageModel::at(const JobKey& key) const {
  const Entry* entry = at(key.id);
  return entry != nullptr && entry->job.endpoint == key.endpoint ? entry : nullptr;
}

Entry* StorageModel::at(const JobKey& key) { return const_cast<Entry*>(std::as_const(*this).at(key)); }

Entry* StorageModel::held(const LeaseRef& lease) {
  Entry* entry = at(lease.job);
  const bool held = entry != nullptr && entry->job.state == JobState::inProgress && entry->job.attempt == lease.attempt;
  return held ? entry : nullptr;
}

// The queue in the order of claims: (lowPriority, rank, arrival).
std::vector<const Entry*> StorageModel::line(std::string_view endpoint) const {
  std::vector<const Entry*> line;
  for (const Entry& entry : entries_) {
    const Job& job = entry.job;
    if (job.endpoint == endpoint && job.state == JobState::inQueue && job.expiresAt > now) line.push_back(&entry);
  }
  const auto place = [](const Entry* entry) { return std::tuple(entry->job.lowPriority, entry->rank, entry->arrival); };
  std::sort(line.begin(), line.end(), [&](const Entry* a, const Entry* b) { return place(a) < place(b); });
  return line;
}

std::optional<std::size_t> StorageModel::ahead(const JobKey& key, std::size_t most) const {
  const std::vector<const Entry*> line = this->line(key.endpoint);
  const auto at = std::find_if(line.begin(), line.end(), [&](const Entry* entry) { return entry->job.id == key.id; });
  if (at == line.end()) return std::nullopt;
  return std::min(static_cast<std::size_t>(at - line.begin()), most);
}

Entry* StorageModel::first(const EndpointId& endpoint) {
  const std::vector<const Entry*> line = this->line(endpoint);
  return line.empty() ? nullptr : at(line.front()->job.id);
}

std::int64_t StorageModel::rankOf(const JobSpec& spec, const QueuePolicy& policy) {
  const std::string group = policy.group(spec);
  if (group.empty()) return policy.rank(spec, now, {});
  GroupState state;
  const auto last = lastRanks_.find({spec.endpoint, group});
  if (last != lastRanks_.end()) state.lastRank = last->second;
  for (const Entry& entry : entries_) {
    const Job& job = entry.job;
    if (job.endpoint != spec.endpoint || job.state != JobState::inQueue || job.expiresAt <= now) continue;
    if (job.lowPriority != spec.policy.lowPriority) continue;
    state.lowestWaiting = std::min(state.lowestWaiting.value_or(entry.rank), entry.rank);
  }
  return lastRanks_[{spec.endpoint, group}] = policy.rank(spec, now, state);
}

InsertResult StorageModel::insert(JobSpec spec, const QueuePolicy& policy,
                                  const std::optional<Idempotency>& idempotency) {
  if (idempotency) {
    if (const auto first = findByIdempotencyKey(spec.endpoint, spec.apiKeyId, *idempotency)) {
      if (const auto* job = std::get_if<Duplicate>(&*first)) return *job;
      return KeyConflict{};
    }
    const std::tuple key(spec.endpoint, spec.apiKeyId, idempotency->key);
    idempotencyKeys_[key] = {*idempotency, spec.id, now + kIdempotencyLife};
  }
  Entry entry;
  entry.rank = rankOf(spec, policy);
  entry.arrival = ++arrivals_;
  entry.job.id = spec.id;
  entry.job.endpoint = spec.endpoint;
  entry.job.lowPriority = spec.policy.lowPriority;
  entry.job.submittedAt = entry.job.queuedAt = now;
  entry.job.expiresAt = now + spec.policy.ttl;
  entry.spec = std::move(spec);
  entries_.push_back(std::move(entry));
  return Inserted{};
}

std::optional<IdempotencyRecord> StorageModel::findByIdempotencyKey(std::string_view endpoint,
                                                                    std::string_view apiKeyId,
                                                                    const Idempotency& idempotency) const {
  const auto known = idempotencyKeys_.find(std::tuple(EndpointId(endpoint), std::string(apiKeyId), idempotency.key));
  if (known == idempotencyKeys_.end() || known->second.endsAt <= now) return std::nullopt;
  if (known->second.words.bodyHash != idempotency.bodyHash) return KeyConflict{};
  return Duplicate{known->second.job};
}

std::optional<Job> StorageModel::find(const JobKey& key) const {
  const Entry* entry = at(key);
  return entry != nullptr ? std::optional(entry->job) : std::nullopt;
}

std::vector<Job> StorageModel::findFinished(std::span<const JobKey> keys) const {
  std::vector<Job> jobs;
  for (const JobKey& key : keys) {
    const auto job = find(key);
    if (job && terminal(job->state)) jobs.push_back(*job);
  }
  return jobs;
}

void StorageModel::end(Entry& entry, Trigger trigger, std::string error, std::string output) {
  Job& job = entry.job;
  job.state = next(job.state, trigger).value();
  job.finishedAt = now;
  job.progress.clear();
  job.error = std::move(error);
  job.output = std::move(output);
  entry.leaseEnd.reset();
  entry.ownerDied = false;
  if (!entry.expiryFixed) job.expiresAt = std::min(job.submittedAt + entry.spec.policy.ttl, now + entry.spec.retention);
  Counters& counters = counters_[job.endpoint];
  if (job.state == JobState::completed) ++counters.completed;
  if (job.state == JobState::failed || job.state == JobState::timedOut) ++counters.failed;
  if (entry.spec.webhook.empty()) return;
  Owed owed;
  owed.delivery.id = job.id + "." + std::to_string(job.attempt);
  owed.delivery.url = entry.spec.webhook;
  owed.delivery.host = testkit::PlainReceiverNames().nameOf(entry.spec.webhook);
  owed.delivery.job = job;
  owed.delivery.input = entry.spec.input;
  owed.delivery.dueAt = now;
  owed.owedAt = now;
  outbox_.push_back(std::move(owed));
}

CancelResult StorageModel::cancel(const JobKey& key) {
  Entry* entry = at(key);
  if (entry == nullptr) return NotFound{};
  if (!next(entry->job.state, Trigger::cancel)) return WrongState{entry->job.state};
  const bool ran = entry->job.state == JobState::inProgress;
  end(*entry, Trigger::cancel, "", "");
  return Cancelled{ran, ran ? LeaseRef{key.id, entry->job.attempt} : LeaseRef{}};
}

RequeueResult StorageModel::requeue(const JobKey& key, const QueuePolicy& policy) {
  Entry* entry = at(key);
  if (entry == nullptr) return NotFound{};
  Job& job = entry->job;
  const auto to = next(job.state, Trigger::retry);
  if (!to) return WrongState{job.state};
  if (!entry->expiryFixed) job.expiresAt = job.submittedAt + entry->spec.policy.ttl;
  JobSpec again = entry->spec;
  again.policy.ttl = job.expiresAt - now;
  entry->rank = rankOf(again, policy);  // the job itself is not queued yet
  entry->arrival = ++arrivals_;
  entry->chunks.clear();
  entry->taken = 0;
  job.state = *to;
  job.queuedAt = now;
  ++job.attempt;
  ++job.retries;
  job.losses = 0;
  job.startedAt.reset();
  job.finishedAt.reset();
  job.workerId.clear();
  job.output.clear();
  job.error.clear();
  ++counters_[job.endpoint].retried;
  return Requeued{};
}

void StorageModel::removeIf(const std::function<bool(const Entry&)>& goes) {
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), goes), entries_.end());
}

std::size_t StorageModel::purgeQueued(std::string_view endpoint) {
  const std::size_t before = entries_.size();
  removeIf([&](const Entry& entry) {
    const Job& job = entry.job;
    return job.endpoint == endpoint && job.state == JobState::inQueue && job.expiresAt > now;
  });
  return before - entries_.size();
}

std::optional<Instant> StorageModel::setTtl(const JobKey& key, Millis ttl) {
  Entry* entry = at(key);
  if (entry == nullptr) return std::nullopt;
  entry->expiryFixed = true;
  entry->job.expiresAt = std::min(now + std::max(ttl, kTtlFloor), entry->job.submittedAt + kTtlCeiling);
  return entry->job.expiresAt;
}

JobPage StorageModel::list(const JobFilter& filter, const PageWindow& window) const {
  JobPage page;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    Job job = entry->job;
    if (job.endpoint != filter.endpoint || job.expiresAt <= now) continue;
    if (filter.state && job.state != *filter.state) continue;
    if (page.total++ < window.offset || page.jobs.size() == window.limit) continue;
    job.output.clear();
    job.progress.clear();
    job.error = listedError(job.error);
    page.jobs.push_back(std::move(job));
  }
  return page;
}

EndpointCounts StorageModel::counts(std::string_view endpoint) const {
  EndpointCounts counts;
  for (const Entry& entry : entries_) {
    if (entry.job.endpoint != endpoint || entry.job.expiresAt <= now) continue;
    if (entry.job.state == JobState::inProgress) ++counts.inProgress;
    if (entry.job.state != JobState::inQueue) continue;
    ++counts.inQueue;
    if (entry.job.lowPriority) ++counts.inQueueLow;
  }
  const std::vector<const Entry*> line = this->line(endpoint);
  if (!line.empty() && !line.front()->job.lowPriority) counts.headQueuedAt = line.front()->job.queuedAt;
  const auto since = counters_.find(endpoint);
  if (since == counters_.end()) return counts;
  counts.completed = since->second.completed;
  counts.failed = since->second.failed;
  counts.retried = since->second.retried;
  return counts;
}

std::size_t StorageModel::remove(std::string_view endpoint) {
  const std::size_t before = entries_.size();
  removeIf([&](const Entry& entry) { return entry.job.endpoint == endpoint; });
  const auto ofEndpoint = [&](const auto& item) { return std::get<0>(item.first) == endpoint; };
  const std::size_t records = std::erase_if(lastRanks_, ofEndpoint) + std::erase_if(idempotencyKeys_, ofEndpoint);
  counters_.erase(EndpointId(endpoint));
  return before - entries_.size() + records;
}

bool StorageModel::hasUnswept(std::string_view endpoint) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.job.endpoint == endpoint && entry.job.expiresAt <= now; });
}

}  // namespace jobq::model

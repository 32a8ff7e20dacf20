#include <algorithm>

#include "memory_faces.h"

namespace jobq::memory {

InsertResult Jobs::insert(JobSpec spec, const QueuePolicy& policy, const std::optional<Idempotency>& idempotency) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  if (idempotency) {
    const PromiseKey key{spec.endpoint, spec.apiKeyId, idempotency->key};
    const auto [promise, fresh] = s_.promises.try_emplace(key, Promise{idempotency->bodyHash, spec.id});
    if (!fresh && promise->second.bodyHash != idempotency->bodyHash) return OtherBody{};
    if (!fresh) return Existing{promise->second.job};
    s_.promiseExpiry.emplace(now + kIdempotencyLife, key);
  }
  if (s_.jobs.contains(spec.id)) throw StorageError("the job id " + spec.id + " exists already");
  auto row = std::make_unique<Row>();
  row->spec = std::move(spec);
  Job& job = row->job;
  job.id = row->spec.id;
  job.endpoint = row->spec.endpoint;
  job.lowPriority = row->spec.policy.lowPriority;
  job.submittedAt = job.queuedAt = now;
  s_.rankAnew(*row, policy, now);
  row->sequence = row->arrival;
  s_.setExpiry(*row, now + row->spec.policy.ttl);
  s_.lines[job.endpoint].rows.emplace(row->sequence, row.get());
  s_.putInLine(*row);
  s_.jobs.emplace(job.id, std::move(row));
  return Inserted{};
}

std::optional<Job> Jobs::find(const JobKey& key) {
  Lock lock(s_.mutex);
  s_.retire();
  const Row* row = s_.find(key);
  return row == nullptr ? std::nullopt : std::optional(row->job);
}

std::vector<Job> Jobs::findFinished(std::span<const JobKey> keys) {
  Lock lock(s_.mutex);
  s_.retire();
  std::vector<Job> finished;
  for (const JobKey& key : keys) {
    const Row* row = s_.find(key);
    if (row != nullptr && terminal(row->job.state)) finished.push_back(row->job);
  }
  return finished;
}

CancelResult Jobs::cancel(const JobKey& key) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  Row* row = s_.find(key);
  if (row == nullptr) return Absent{};
  const auto to = next(row->job.state, Trigger::cancel);
  if (!to) return WrongState{row->job.state};
  const bool wasRunning = row->job.state == JobState::inProgress;
  if (wasRunning) {
    s_.stopRunning(*row);
  } else {
    s_.takeFromLine(*row);
  }
  s_.end(*row, *to, now);
  return Cancelled{wasRunning, {row->job.id, row->job.attempt}};
}

RequeueResult Jobs::requeue(const JobKey& key, const QueuePolicy& policy) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  Row* row = s_.find(key);
  if (row == nullptr) return Absent{};
  const auto to = next(row->job.state, Trigger::retry);
  if (!to) return WrongState{row->job.state};
  Job& job = row->job;
  job.losses = 0;
  ++job.retries;
  job.queuedAt = now;
  job.startedAt.reset();
  job.finishedAt.reset();
  job.workerId.clear();
  job.output.clear();
  job.error.clear();
  ++s_.lines[job.endpoint].counts.retried;
  if (!row->pinned) s_.setExpiry(*row, job.submittedAt + row->spec.policy.ttl);
  s_.rankAnew(*row, policy, now);
  s_.sendBack(*row);
  return Requeued{};
}

std::size_t Jobs::purgeQueued(std::string_view endpoint) {
  Lock lock(s_.mutex);
  s_.retire();
  const auto line = s_.lines.find(endpoint);
  if (line == s_.lines.end()) return 0;
  std::size_t removed = 0;
  for (; !line->second.waiting.empty(); ++removed) s_.erase(*std::get<Row*>(*line->second.waiting.begin()));
  return removed;
}

std::optional<Instant> Jobs::setTtl(const JobKey& key, Millis ttl) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  Row* row = s_.find(key);
  if (row == nullptr) return std::nullopt;
  row->pinned = true;
  s_.setExpiry(*row, std::min(now + std::max(ttl, kTtlFloor), row->job.submittedAt + kTtlCeiling));
  return row->job.expiresAt;
}

JobPage Jobs::list(const JobFilter& filter, const PageWindow& window) {
  Lock lock(s_.mutex);
  s_.retire();
  JobPage page;
  const auto line = s_.lines.find(filter.endpoint);
  if (line == s_.lines.end()) return page;
  for (auto at = line->second.rows.rbegin(); at != line->second.rows.rend(); ++at) {
    const Job& job = at->second->job;
    if (filter.state && job.state != *filter.state) continue;
    const std::size_t index = page.total++;
    if (index < window.offset || page.jobs.size() >= window.limit) continue;
    page.jobs.push_back(job);
    page.jobs.back().output.clear();
    page.jobs.back().progress.clear();
  }
  return page;
}

EndpointCounts Jobs::counts(std::string_view endpoint) {
  Lock lock(s_.mutex);
  s_.retire();
  const auto line = s_.lines.find(endpoint);
  return line == s_.lines.end() ? EndpointCounts{} : line->second.counts;
}

std::size_t Jobs::remove(std::string_view endpoint, std::size_t batch) {
  Lock lock(s_.mutex);
  s_.retire();
  const auto line = s_.lines.find(endpoint);
  if (line == s_.lines.end()) return 0;
  std::size_t removed = 0;
  for (; removed < batch && !line->second.rows.empty(); ++removed) s_.erase(*line->second.rows.begin()->second);
  if (!line->second.rows.empty()) return removed;
  s_.lines.erase(line);
  std::erase_if(s_.promises, [endpoint](const auto& entry) { return std::get<0>(entry.first) == endpoint; });
  std::erase_if(s_.promiseExpiry, [endpoint](const auto& entry) { return std::get<0>(entry.second) == endpoint; });
  return removed;
}

}  // namespace jobq::memory

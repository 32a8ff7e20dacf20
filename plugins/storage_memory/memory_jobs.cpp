// The store of jobs as callers see them.
#include <algorithm>
#include <exception>

#include "memory_stores.h"

namespace jobq::memory {
namespace {

/// Returns whether the two submissions are calls of one insert().
bool isSameSubmission(const JobSpec& one, const JobSpec& other) {
  return one.id == other.id && one.endpoint == other.endpoint && one.apiKeyId == other.apiKeyId &&
         one.input == other.input;
}

}  // namespace

std::optional<IdempotencyRecord> Jobs::earlier(const Endpoint& endpoint, const IdempotencyRef& key,
                                               const Idempotency& idempotency, Instant now) {
  const auto first = endpoint.idempotencyKeys.find(key);
  if (first == endpoint.idempotencyKeys.end() || first->second.endsAt <= now) return std::nullopt;
  if (first->second.bodyHash != idempotency.bodyHash) return KeyConflict{};
  return Duplicate{first->second.job};
}

void Jobs::remember(Endpoint& endpoint, IdempotencyRef key, const Idempotency& idempotency, const JobSpec& job,
                    Instant now) {
  const Instant end = now + kIdempotencyLife;
  endpoint.idempotencyKeys.insert_or_assign(key, IdempotencyEntry{idempotency.bodyHash, job.id, end});
  s_.idempotencyEnds.push_back({end, job.endpoint, std::move(key)});
}

void Jobs::place(std::shared_ptr<const JobSpec> spec, Endpoint& endpoint, std::int64_t rank, Instant now) {
  Row& row = endpoint.jobs.emplace_front();
  row.endpoint = &endpoint;
  row.rank = rank;
  row.arrival = ++s_.arrivals;
  row.number = row.arrival;
  row.submittedAt = row.queuedAt = now;
  row.spec = std::move(spec);
  s_.byId.emplace(row.spec->id, endpoint.jobs.begin());
  s_.setExpiry(row, now + row.spec->policy.ttl);
  s_.enqueue(row);
}

InsertResult Jobs::insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) {
  refusePlanned(job, terms);
  if (const auto* begun = std::get_if<Begun>(&terms.start)) {
    if (!capabilities_.has(Capability::insertBegun)) throwLacking("JobStore::insert() with Begun");
    insertBegun(std::move(job), policy, *begun);
    return Inserted{};
  }
  const auto& idempotency = terms.idempotency;
  const auto spec = std::make_shared<const JobSpec>(std::move(job));
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  Endpoint& endpoint = s_.endpoints[spec->endpoint];
  IdempotencyRef key;
  if (idempotency) {
    key = {spec->apiKeyId, idempotency->key};
    if (auto first = earlier(endpoint, key, *idempotency, now)) {
      const auto* duplicate = std::get_if<Duplicate>(&*first);
      if (duplicate != nullptr && duplicate->id == spec->id) return Inserted{};  // the call is repeated
      return std::visit([](auto& answer) -> InsertResult { return std::move(answer); }, *first);
    }
  }
  // An expired job keeps its id until its space is freed: a late report about the old job must not reach a new one.
  if (const auto taken = s_.byId.find(spec->id); taken != s_.byId.end()) {
    const Row& row = *taken->second;
    if (!row.expired(now) && isSameSubmission(*row.spec, *spec)) return Inserted{};  // the call is repeated
    throw StorageError("job " + spec->id + " exists already; make another id");
  }
  const std::int64_t rank = s_.rankOf(*spec, endpoint, policy, now);
  if (idempotency) remember(endpoint, std::move(key), *idempotency, *spec, now);
  place(spec, endpoint, rank, now);
  return Inserted{};
}

namespace {

/// Returns the values of the first attempt, with its outcome if there is one. Made in front of the critical section.
std::unique_ptr<Run> firstRunOf(const Begun& run) {
  auto made = std::make_unique<Run>();
  made->worker = run.worker;
  made->holder = run.holder.epoch;
  if (run.outcome == nullptr) return made;
  Report report(*run.outcome);
  made->output = std::move(report.output);
  made->error = std::move(report.error);
  return made;
}

/// Returns the state of a job behind its first attempt, which still runs if `outcome` is null.
JobState stateBehind(const Outcome* outcome) {
  constexpr JobState kRunning = next(JobState::inQueue, Trigger::claim).value();
  if (outcome == nullptr) return kRunning;
  return next(kRunning, std::holds_alternative<Failed>(*outcome) ? Trigger::fail : Trigger::complete).value();
}

}  // namespace

void Jobs::insertLater(JobSpec job, const QueuePolicy& policy, std::optional<Idempotency> idempotency,
                       std::unique_ptr<InsertReceiver> receiver) {
  if (!capabilities_.has(Capability::insertLater)) throwLacking("JobStore::insertLater()");
  std::optional<InsertResult> result;
  std::exception_ptr error;
  try {
    result = insert(std::move(job), policy, {std::move(idempotency)});
  } catch (const StorageError&) {
    error = std::current_exception();
  }
  if (error) return receiver->failed(std::move(error));
  receiver->inserted(std::move(*result));
}

void Jobs::insertBegun(JobSpec&& begun, const QueuePolicy& policy, const Begun& run) {
  const Outcome* const outcome = run.outcome;
  Rows fresh;
  Row& row = fresh.emplace_front();
  row.spec = std::make_shared<const JobSpec>(begun);  // a copy: the caller keeps the job after an exception
  const JobSpec& job = *row.spec;
  row.run = firstRunOf(run);
  row.state = stateBehind(outcome);
  row.attempt = 1;
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  if (s_.byId.contains(job.id)) throw StorageError("job " + job.id + " exists already; make another id");
  if (outcome == nullptr && !s_.lives.isAlive(run.holder)) {
    throw StorageError("the life of the node of job " + job.id + " has ended");
  }
  const Instant begin = now - run.age;
  if (begin + job.policy.ttl <= now) throw StorageError("job " + job.id + " has outlived its policy.ttl");
  Endpoint& endpoint = s_.endpoints[job.endpoint];
  row.endpoint = &endpoint;
  row.rank = s_.rankOf(job, endpoint, policy, now);
  row.arrival = row.number = ++s_.arrivals;
  row.submittedAt = row.queuedAt = begin;
  row.expiresAt = begin + job.policy.ttl;
  row.run->startedAt = begin;
  row.run->deadline = begin + job.policy.executionTimeout;
  if (outcome != nullptr) {
    row.expiresAt = expiryAfterEnd(row.state, now, row.expiresAt, job.retention, job.retentionFailed);
    row.run->finishedAt = now;
  }
  placeRun(fresh, endpoint, now);
}

void Jobs::placeRun(Rows& fresh, Endpoint& endpoint, Instant now) {
  Row& row = fresh.front();
  try {
    s_.byId.emplace(row.spec->id, fresh.begin());
    s_.byExpiry.emplace_hint(s_.byExpiry.end(), row.expiresAt, &row);
    if (row.state == JobState::inProgress) {
      s_.byDeadline.emplace_hint(s_.byDeadline.end(), row.run->deadline, &row);
    } else if (!row.spec->webhook.empty()) {
      s_.deliveries.owe(row, now);
    }
  } catch (...) {  // no memory
    s_.byExpiry.erase({row.expiresAt, &row});
    s_.byId.erase(row.spec->id);
    throw;
  }
  if (row.state == JobState::inProgress) ++endpoint.inProgress;
  if (row.state == JobState::completed) ++endpoint.completed;
  if (row.state == JobState::failed) ++endpoint.failed;
  endpoint.jobs.splice(endpoint.jobs.begin(), fresh);
}

std::optional<IdempotencyRecord> Jobs::findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                            const Idempotency& idempotency) {
  const IdempotencyRef key{std::string(apiKeyId), idempotency.key};
  Lock lock(s_.mutex);
  const auto found = s_.endpoints.find(endpoint);
  if (found == s_.endpoints.end()) return std::nullopt;
  return earlier(found->second, key, idempotency, s_.clock.now());
}

std::optional<Job> Jobs::find(const JobKey& key, std::uint64_t mostBytes, JobExtent extent) {
  Found answer;
  {
    Lock lock(s_.mutex);
    const Row* row = s_.find(key, s_.clock.now());
    if (row == nullptr) return std::nullopt;
    answer = found(*row);
    answer.spec = row->spec;
  }
  return std::move(answer).within(mostBytes, extent);
}

std::vector<std::optional<JobSummary>> Jobs::summaries(std::span<const JobKey> keys) {
  std::vector<std::optional<JobSummary>> summaries;
  summaries.reserve(keys.size());
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  for (const JobKey& key : keys) {
    std::optional<JobSummary>& summary = summaries.emplace_back();
    const Row* row = s_.find(key, now);
    if (row != nullptr) summary = JobSummary{row->state, row->attempt, row->run ? row->run->chunks.size() : 0};
  }
  return summaries;
}

CancelResult Jobs::cancel(const JobKey& key) {
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  Row* row = s_.find(key, now);
  if (row == nullptr) return NotFound{};
  if (row->state != JobState::cancelled) {
    if (!next(row->state, Trigger::cancel)) return WrongState{row->state};
    s_.end(*row, Trigger::cancel, now);
  }
  return Cancelled{{row->spec->id, row->attempt}};
}

namespace {

/// Returns the answer of requeue() if the job does not change; no value if the job returns to the queue.
std::optional<RequeueResult> unchanged(const Row& row, std::uint32_t failedAttempt) {
  if (row.attempt > failedAttempt) return Requeued{};  // the call is repeated
  if (row.attempt < failedAttempt || !next(row.state, Trigger::retry)) return WrongState{row.state};
  return std::nullopt;
}

}  // namespace

RequeueResult Jobs::requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) {
  std::shared_ptr<const JobSpec> spec;
  {
    Lock lock(s_.mutex);
    const Row* row = s_.find(key, s_.clock.now());
    if (row == nullptr) return NotFound{};
    if (const auto answer = unchanged(*row, failedAttempt)) return *answer;
    spec = row->spec;
  }
  JobSpec again = *spec;        // only for the policy; copied outside the lock, because an input may be large
  std::unique_ptr<Run> before;  // freed after the lock
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  Row* row = s_.find(key, now);
  if (row == nullptr || row->spec != spec) return NotFound{};  // removed meanwhile; a new job may have the id
  if (const auto answer = unchanged(*row, failedAttempt)) return *answer;
  const Instant expiry = row->expiryFixed
                             ? row->expiresAt
                             : expiryAfterRetry(row->submittedAt, now, spec->policy.ttl, spec->retentionFailed);
  again.policy.ttl = expiry - now;
  row->rank = s_.rankOf(again, *row->endpoint, policy, now);
  row->arrival = ++s_.arrivals;
  row->queuedAt = now;
  row->state = next(row->state, Trigger::retry).value();
  ++row->attempt;
  ++row->retries;
  ++row->endpoint->retried;
  row->losses = 0;
  before = std::exchange(row->run, std::make_unique<Run>());
  row->run->log.swap(before->log);
  row->run->logLines = before->logLines;
  s_.setExpiry(*row, expiry);
  s_.enqueue(*row);
  return Requeued{};
}

// A million jobs in a single critical section would keep all other calls waiting.
std::size_t Jobs::purgeQueued(std::string_view endpoint) {
  std::optional<std::uint64_t> last;  // jobs that arrive during the purge stay
  std::size_t all = 0;
  for (std::size_t purged = kPurgeBatch; purged == kPurgeBatch; all += purged) {
    Rows dead;
    Lock lock(s_.mutex);
    if (!last) last = s_.arrivals;
    const auto at = s_.endpoints.find(endpoint);
    if (at == s_.endpoints.end()) return all;
    purgeSome(at->second, *last, dead);
    purged = dead.size();
  }
  return all;
}

void Jobs::purgeSome(Endpoint& endpoint, std::uint64_t last, Rows& dead) {
  const Instant now = s_.clock.now();
  for (Queue& queue : endpoint.queues) {
    for (auto at = queue.begin(); at != queue.end() && dead.size() < kPurgeBatch;) {
      Row& row = *(at++)->second;
      if (row.expired(now)) {
        s_.dequeue(row);
      } else if (row.arrival <= last) {
        s_.removeRow(row, dead);
      }
    }
  }
}

std::optional<Instant> Jobs::setTtl(const JobKey& key, Millis ttl) {
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  Row* row = s_.find(key, now);
  if (row == nullptr) return std::nullopt;
  s_.setExpiry(*row, expiryByTtl(row->submittedAt, row->expiresAt, now, ttl));
  row->expiryFixed = true;
  return row->expiresAt;
}

JobPage Jobs::list(const JobFilter& filter, const PageWindow& window) {
  JobPage page;
  std::size_t passed = 0;
  std::uint64_t last = 0;
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  const auto at = s_.endpoints.find(filter.endpoint);
  if (at == s_.endpoints.end()) return page;
  for (const Row& row : at->second.jobs) {
    if (row.expired(now) || (filter.state && row.state != *filter.state)) continue;
    ++page.total;
    if (window.cursor != 0 && row.number >= window.cursor) continue;
    if (passed++ < window.offset || window.limit == 0) continue;
    if (!filter.matches(row.spec->id, row.spec->apiKeyId)) continue;
    if (page.jobs.size() == window.limit) {
      if (page.next == 0) page.next = last;
      continue;
    }
    Job& job = page.jobs.emplace_back(found(row).job);
    job.apiKeyId = row.spec->apiKeyId;
    job.progress.clear();
    job.error = listedError(job.error);
    last = row.number;
  }
  return page;
}

EndpointCounts Jobs::counts(std::string_view name) {
  Lock lock(s_.mutex);
  const auto at = s_.endpoints.find(name);
  return at == s_.endpoints.end() ? EndpointCounts{} : countsOf(at->second, s_.clock.now());
}

std::map<EndpointId, EndpointCounts> Jobs::allCounts() {
  std::map<EndpointId, EndpointCounts> all;
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  for (auto& [name, endpoint] : s_.endpoints) all.emplace(name, countsOf(endpoint, now));
  return all;
}

EndpointCounts Jobs::countsOf(Endpoint& endpoint, Instant now) {
  EndpointCounts counts;
  if (const Row* head = s_.head(endpoint.queues[false], now)) counts.headWait = now - head->queuedAt;
  counts.inQueueLow = endpoint.queues[true].size();
  counts.inQueue = endpoint.queues[false].size() + counts.inQueueLow;
  counts.inProgress = endpoint.inProgress;
  counts.completed = endpoint.completed;
  counts.failed = endpoint.failed;
  counts.retried = endpoint.retried;
  // Jobs expired since the last sweep count as absent. The loop walks over about a second's worth of jobs, not over the
  // whole queue.
  for (auto old = s_.byExpiry.begin(); old != s_.byExpiry.end() && old->first <= now; ++old) {
    const Row& row = *old->second;
    if (row.endpoint != &endpoint) continue;
    if (row.state == JobState::inProgress) --counts.inProgress;
    if (row.isQueued) --counts.inQueue;
    if (row.isQueued && row.spec->policy.lowPriority) --counts.inQueueLow;
  }
  return counts;
}

std::size_t Jobs::remove(std::string_view endpoint, std::size_t batch) {
  Rows dead;
  Lock lock(s_.mutex);
  const auto at = s_.endpoints.find(endpoint);
  if (at == s_.endpoints.end()) return 0;
  Endpoint& left = at->second;
  while (dead.size() < batch && !left.jobs.empty()) s_.removeRow(left.jobs.back(), dead);
  std::size_t removed = dead.size();
  for (; removed < batch && !left.idempotencyKeys.empty(); ++removed)
    left.idempotencyKeys.erase(left.idempotencyKeys.begin());
  for (; removed < batch && !left.lastRanks.empty(); ++removed) left.lastRanks.erase(left.lastRanks.begin());
  if (removed < batch) s_.endpoints.erase(at);
  return removed;
}

}  // namespace jobq::memory

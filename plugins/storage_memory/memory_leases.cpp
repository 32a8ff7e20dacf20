// The operations of a worker: claim, finish, progress. The handling of overdue jobs and of lost workers
// is in `memory_sweep.cpp`.
#include <algorithm>
#include <new>

#include "memory_fencing.h"
#include "memory_stores.h"

namespace jobq::memory {

void Leases::markClaimed(Row& row, const WorkerId& worker, const Holder& holder, Instant now) {
  const JobState to = next(row.state, Trigger::claim).value();
  const Instant deadline = now + row.spec->policy.executionTimeout;
  // Steps that need memory come first: without memory the job stays in its queue.
  if (!row.run) row.run = std::make_unique<Run>();
  row.run->worker = worker;
  s_.byDeadline.emplace_hint(s_.byDeadline.end(), deadline, &row);
  s_.dequeue(row);
  row.state = to;
  ++row.attempt;
  ++row.endpoint->inProgress;
  row.run->startedAt = now;
  row.run->deadline = deadline;
  row.run->holder = holder.epoch;
}

namespace {

/// Called inside the critical section. The job is IN_PROGRESS.
ClaimedRow claimedRow(const Row& row, Instant now) {
  return {row.spec,         row.attempt,         row.run->worker,
          row.submittedAt,  *row.run->startedAt, std::min(row.run->deadline, row.expiresAt) - now,
          row.run->logLines};
}

ClaimedJob claimedJob(const ClaimedRow& taken) {
  ClaimedJob job;
  job.lease = {taken.spec->id, taken.attempt};
  job.endpoint = taken.spec->endpoint;
  job.worker = taken.worker;
  job.input = taken.spec->input;
  job.webhook = taken.spec->webhook;
  job.s3Config = taken.spec->s3Config;
  job.policy = taken.spec->policy;
  job.submittedAt = taken.submittedAt;
  job.startedAt = taken.startedAt;
  job.runsFor = taken.runsFor;
  job.logLines = taken.logLines;
  return job;
}

/// Copies the inputs. Called outside the critical section.
std::vector<ClaimedJob> claimedJobs(const std::vector<ClaimedRow>& taken) {
  std::vector<ClaimedJob> jobs;
  jobs.reserve(taken.size());
  for (const ClaimedRow& each : taken) jobs.push_back(claimedJob(each));
  return jobs;
}

}  // namespace

void Leases::claimFor(const ClaimWant& want, const Holder& holder, CallId id, Instant now, InputBound& bound,
                      std::vector<ClaimedRow>& taken) {
  const auto endpoint = s_.endpoints.find(want.endpoint);
  if (endpoint == s_.endpoints.end()) return;
  for (const WorkerId& worker : want.workers) {
    Row* row = s_.head(endpoint->second.queues[false], now);
    if (row == nullptr) row = s_.head(endpoint->second.queues[true], now);
    if (row == nullptr || !bound.addInput(want.endpoint, row->spec->input.size())) return;
    markClaimed(*row, worker, holder, now);
    row->run->claim = id;
    taken.push_back(claimedRow(*row, now));
  }
}

ClaimResult Leases::claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id, std::uint64_t mostBytes) {
  std::vector<ClaimedRow> taken;
  InputBound bound(mostBytes);
  {
    Lock lock(s_.mutex);
    const Instant now = s_.clock.now();
    if (!s_.lives.isAlive(holder)) return {};
    for (const ClaimWant& want : wants) claimFor(want, holder, id, now, bound, taken);
  }
  return {claimedJobs(taken), bound.extractRefused()};
}

std::vector<ClaimedJob> Leases::claimed(std::span<const ClaimWant> wants, CallId id) {
  std::vector<ClaimedRow> taken;
  {
    Lock lock(s_.mutex);
    const Instant now = s_.clock.now();
    std::vector<const Row*> running;
    for (const auto& [deadline, row] : s_.byDeadline) {
      if (row->run->claim == id && row->state == JobState::inProgress && !row->expired(now)) running.push_back(row);
    }
    for (const ClaimWant& want : wants) {
      for (const WorkerId& worker : want.workers) {
        for (const Row* row : running) {
          if (row->run->worker == worker && row->spec->endpoint == want.endpoint)
            taken.push_back(claimedRow(*row, now));
        }
      }
    }
  }
  return claimedJobs(taken);
}

namespace {

/// Returns the state of the attempt. `row` is null if the job is absent.
LeaseState stateOf(const Row* row, const LeaseRef& lease) {
  if (row == nullptr) return LeaseState::deleted;
  if (!isCurrentAttempt(*row, lease)) return LeaseState::takenOver;
  switch (row->state) {
    case JobState::inProgress: return LeaseState::held;
    case JobState::cancelled: return LeaseState::cancelled;
    case JobState::timedOut: return LeaseState::timedOut;
    default: return LeaseState::takenOver;
  }
}

}  // namespace

std::vector<LeaseState> Leases::states(std::span<const LeaseRef> leases) {
  std::vector<LeaseState> states;
  states.reserve(leases.size());
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  for (const LeaseRef& lease : leases) states.push_back(stateOf(s_.find(lease.job, now), lease));
  return states;
}

std::vector<QueuedEndpoint> Leases::queuedEndpoints() {
  std::vector<QueuedEndpoint> queued;
  Lock lock(s_.mutex);
  for (const auto& [id, endpoint] : s_.endpoints) {
    const bool hasNormal = !endpoint.queues[false].empty();
    if (hasNormal || !endpoint.queues[true].empty()) queued.push_back({id, hasNormal});
  }
  return queued;
}

namespace {

/// Returns whether the attempt of the lease has ended as `state` with this output and error. `row` is null if the job
/// is absent.
bool hasEnded(const Row* row, const LeaseRef& lease, JobState state, const Text& output, const std::string& error) {
  if (row == nullptr || row->state != state || !isCurrentAttempt(*row, lease)) return false;
  const Text& recorded = row->run->output;
  const bool sameOutput = output && recorded ? *output == *recorded : output == recorded;
  return sameOutput && row->run->error == error;
}

}  // namespace

Report::Report(const Outcome& outcome) {
  const auto* failed = std::get_if<Failed>(&outcome);
  const std::string& body = failed != nullptr ? failed->output : std::get<Completed>(outcome).output;
  if (!body.empty()) output = std::make_shared<const std::string>(body);
  if (failed == nullptr) return;
  trigger = Trigger::fail;
  error = failed->error;
}

ReportResult Leases::finishNow(const LeaseRef& lease, Report& report, Instant now) {
  Row* row = s_.held(lease, now);
  if (row == nullptr) {
    const JobState state = next(JobState::inProgress, report.trigger).value();
    const bool repeated = hasEnded(s_.find(lease.job, now), lease, state, report.output, report.error);
    return repeated ? ReportResult::accepted : ReportResult::staleAttempt;
  }
  row->run->output = std::move(report.output);
  row->run->error = std::move(report.error);
  s_.end(*row, report.trigger, now);
  return ReportResult::accepted;
}

FinishResult Leases::finish(std::span<const EndedAttempt> ends, Durability durability,
                            const std::optional<FusedClaim>& claim) {
  if (durability == Durability::unsynced) throwLacking("unsynced LeaseStore::finish()");
  refusePlanned(ends);
  std::vector<Report> reports;
  for (const EndedAttempt& end : ends) reports.emplace_back(end.outcome);
  FinishResult done;
  done.reports.reserve(ends.size());
  std::vector<ClaimedRow> taken;
  if (claim) taken.reserve(claim->want.workers.size());
  {
    Lock lock(s_.mutex);
    const Instant now = s_.clock.now();
    for (std::size_t i = 0; i < ends.size(); ++i) done.reports.push_back(finishNow(ends[i].lease, reports[i], now));
    if (!claim || !s_.lives.isAlive(claim->holder)) return done;
    try {
      InputBound bound(kMostFusedInput);
      claimFor(claim->want, claim->holder, claim->id, now, bound, taken);
    } catch (const std::bad_alloc&) {
      sendBack(taken);
      return done;
    }
  }
  try {
    done.claimed = claimedJobs(taken);
  } catch (const std::bad_alloc&) {  // such as for a large input
    Lock lock(s_.mutex);
    sendBack(taken);
  }
  return done;
}

// The outcome is recorded, so the report must not fail: its caller would repeat it and claim further jobs.
void Leases::sendBack(const std::vector<ClaimedRow>& taken) {
  DiscardedChunks none;  // a claimed job has no chunk yet
  for (const ClaimedRow& each : taken) {
    Row* const row = s_.find(each.spec->id, s_.clock.now());
    const bool isClaimed = row != nullptr && row->state == JobState::inProgress && row->attempt == each.attempt;
    if (isClaimed) s_.sendBack(*row, Trigger::release, none);
  }
}

ReportResult Leases::progress(const LeaseRef& lease, std::string json) {
  Lock lock(s_.mutex);
  Row* row = s_.held(lease, s_.clock.now());
  if (row == nullptr) return ReportResult::staleAttempt;
  row->run->progress.swap(json);
  return ReportResult::accepted;
}

std::optional<std::size_t> Leases::ahead(const JobKey& key, std::size_t most) {
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  const Row* row = s_.find(key, now);
  if (row == nullptr || row->state != JobState::inQueue) return std::nullopt;
  const auto& queues = row->endpoint->queues;
  const bool low = row->spec->policy.lowPriority;
  std::size_t before = 0;
  const auto count = [&](const Queue& queue, Queue::const_iterator end) {
    for (auto at = queue.begin(); at != end && before < most; ++at) before += at->second->expired(now) ? 0 : 1;
  };
  if (low) count(queues[false], queues[false].end());
  count(queues[low], queues[low].find({row->rank, row->arrival}));
  return before;
}

}  // namespace jobq::memory

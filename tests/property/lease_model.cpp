#include "lease_model.h"

#include <algorithm>
#include <set>
#include <utility>

namespace jobq::model {
namespace {

void nameOnce(std::vector<EndpointId>& endpoints) {
  const std::set<EndpointId> once(endpoints.begin(), endpoints.end());
  endpoints.assign(once.begin(), once.end());
}

}  // namespace

std::optional<std::size_t> LeaseModel::ahead(const JobKey& key, std::size_t most,
                                             const std::optional<std::size_t>& said) {
  const std::vector<const Entry*> queue = state_.queue(key.endpoint);
  std::erase_if(state_.counted, [&](const CountedPart& part) { return part.asOf + Millis(1'000) <= state_.now; });
  if (most > 0 && queue.size() >= most) {
    state_.counted.push_back({key.endpoint, most, state_.now, ModelState::placeOf(*queue[most - 1])});
  }
  const auto at = std::find_if(queue.begin(), queue.end(), [&](const Entry* entry) { return entry->job.id == key.id; });
  if (at == queue.end()) return std::nullopt;
  const auto isBehind = [&](const CountedPart& part) {
    return part.endpoint == key.endpoint && part.most == most && part.end < ModelState::placeOf(**at);
  };
  if (said == most && std::any_of(state_.counted.begin(), state_.counted.end(), isBehind)) return said;
  return std::min(static_cast<std::size_t>(at - queue.begin()), most);
}

Entry* LeaseModel::first(const EndpointId& endpoint) {
  const std::vector<const Entry*> queue = state_.queue(endpoint);
  return queue.empty() ? nullptr : state_.find(queue.front()->job.id);
}

ClaimedJob LeaseModel::start(Entry& entry, const WorkerId& worker, const Holder& holder) {
  Job& job = entry.job;
  job.state = next(job.state, Trigger::claim).value();
  ++job.attempt;
  job.startedAt = state_.now;
  job.workerId = worker;
  entry.deadline = state_.now + entry.spec.policy.executionTimeout;
  entry.holder = holder.epoch;
  return started(entry);
}

ClaimedJob LeaseModel::started(const Entry& entry) const {
  const Job& job = entry.job;
  ClaimedJob claimed;
  claimed.lease = {job.id, job.attempt};
  claimed.endpoint = job.endpoint;
  claimed.worker = job.workerId;
  claimed.input = entry.spec.input;
  claimed.webhook = entry.spec.webhook;
  claimed.s3Config = entry.spec.s3Config;
  claimed.policy = entry.spec.policy;
  claimed.submittedAt = job.submittedAt;
  claimed.startedAt = *job.startedAt;
  claimed.runsFor = std::min(entry.deadline, job.expiresAt) - state_.now;
  claimed.logLines = entry.logLines;
  return claimed;
}

ClaimResult LeaseModel::claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                              std::uint64_t mostBytes) {
  ClaimResult claimed;
  if (holder.epoch == 0 || holder.epoch != state_.life) return claimed;
  std::uint64_t left = mostBytes;
  for (const ClaimWant& want : wants) {
    for (const WorkerId& worker : want.workers) {
      Entry* entry = first(want.endpoint);
      if (entry == nullptr) break;
      const std::uint64_t bytes = entry->spec.input.size();
      if (bytes > std::max(left, kSmallInput)) {
        claimed.left.push_back(want.endpoint);
        break;
      }
      left -= std::min(left, bytes);
      claimed.jobs.push_back(start(*entry, worker, holder));
      entry->claim = id;
    }
  }
  return claimed;
}

void LeaseModel::beginFirstRun(const JobId& job, const Begun& run) {
  Entry& entry = *state_.find(job);
  (void)start(entry, run.worker, run.holder);
  const Instant begin = state_.now - run.age;
  entry.job.submittedAt = entry.job.queuedAt = begin;
  entry.job.startedAt = begin;
  entry.job.expiresAt = begin + entry.spec.policy.ttl;
  entry.deadline = begin + entry.spec.policy.executionTimeout;
}

std::vector<ClaimedJob> LeaseModel::claimed(std::span<const ClaimWant> wants, CallId id) const {
  std::vector<ClaimedJob> jobs;
  for (const ClaimWant& want : wants) {
    for (const WorkerId& worker : want.workers) {
      for (const Entry& entry : state_.entries) {
        const bool isTheirs = entry.claim == id && entry.job.workerId == worker && entry.job.endpoint == want.endpoint;
        const bool runs = entry.job.state == JobState::inProgress && entry.job.expiresAt > state_.now;
        if (isTheirs && runs) jobs.push_back(started(entry));
      }
    }
  }
  return jobs;
}

std::vector<LeaseState> LeaseModel::states(std::span<const LeaseRef> leases) {
  std::vector<LeaseState> states;
  for (const LeaseRef& lease : leases) {
    const Entry* entry = state_.find(lease.job);
    if (entry == nullptr) {
      states.push_back(LeaseState::deleted);
    } else if (entry->job.attempt != lease.attempt) {
      states.push_back(LeaseState::takenOver);
    } else if (entry->job.state == JobState::inProgress) {
      states.push_back(LeaseState::held);
    } else if (entry->job.state == JobState::cancelled) {
      states.push_back(LeaseState::cancelled);
    } else {
      states.push_back(entry->job.state == JobState::timedOut ? LeaseState::timedOut : LeaseState::takenOver);
    }
  }
  return states;
}

std::uint64_t LeaseModel::join() { return state_.life = ++state_.epochs; }

ReportResult LeaseModel::finish(const LeaseRef& lease, const Outcome& outcome) {
  const auto* failed = std::get_if<Failed>(&outcome);
  const std::string error = failed != nullptr ? failed->error : "";
  const std::string output = failed != nullptr ? failed->output : std::get<Completed>(outcome).output;
  if (Entry* entry = state_.held(lease)) {
    state_.end(*entry, failed != nullptr ? Trigger::fail : Trigger::complete, error, output);
    return ReportResult::accepted;
  }
  const Entry* entry = state_.find(lease.job);
  if (entry == nullptr || entry->job.attempt != lease.attempt) return ReportResult::staleAttempt;
  const JobState state = failed != nullptr ? JobState::failed : JobState::completed;
  const bool isSame = entry->job.state == state && entry->job.error == error && entry->job.output == output;
  return isSame ? ReportResult::accepted : ReportResult::staleAttempt;
}

ReportResult LeaseModel::progress(const LeaseRef& lease, const std::string& json) {
  Entry* entry = state_.held(lease);
  if (entry == nullptr) return ReportResult::staleAttempt;
  entry->job.progress = json;
  return ReportResult::accepted;
}

void LeaseModel::sendBack(Entry& entry, Trigger trigger) {
  entry.job.state = next(entry.job.state, trigger).value();
  ++entry.job.attempt;
  entry.job.progress.clear();
  entry.chunks.clear();
  entry.taken = 0;
  entry.takenBy = 0;
}

void LeaseModel::loseOne(Entry& entry, SweepResult& swept) {
  Job& job = entry.job;
  swept.stopped.push_back({job.id, job.attempt});
  ++job.losses;
  ++job.retries;
  ++state_.counters[job.endpoint].retried;
  if (job.losses < entry.spec.maxAttempts) {
    sendBack(entry, Trigger::lose);
    swept.requeuedAt.push_back(job.endpoint);
  } else {
    swept.finished.push_back({job.endpoint, job.id});
    state_.end(entry, Trigger::loseLast, kAnyError, "");
  }
}

SweepResult LeaseModel::giveBack(std::span<const ReturnedJob> jobs) {
  SweepResult returned;
  for (const ReturnedJob& job : jobs) {
    Entry* const entry = state_.held(job.lease);
    if (entry == nullptr) continue;
    if (job.isLoss) {
      loseOne(*entry, returned);
    } else {
      returned.stopped.push_back(job.lease);
      returned.requeuedAt.push_back(entry->job.endpoint);
      sendBack(*entry, Trigger::release);
    }
  }
  nameOnce(returned.requeuedAt);
  return returned;
}

SweepResult LeaseModel::sweep() {
  SweepResult swept;
  for (const Entry& entry : state_.entries) {
    if (entry.job.expiresAt > state_.now) continue;
    ++swept.removed;
    if (entry.job.state == JobState::inProgress) swept.stopped.push_back({entry.job.id, entry.job.attempt});
  }
  state_.removeIf([this](const Entry& entry) { return entry.job.expiresAt <= state_.now; });
  for (Entry& entry : state_.entries) {
    if (entry.job.state != JobState::inProgress) continue;
    if (entry.deadline <= state_.now) {
      swept.stopped.push_back({entry.job.id, entry.job.attempt});
      swept.finished.push_back({entry.job.endpoint, entry.job.id});
      state_.end(entry, Trigger::timeOut, kAnyError, "");
    } else if (entry.holder != state_.life) {
      loseOne(entry, swept);
    }
  }
  std::erase_if(state_.idempotencyKeys,
                [this](const auto& idempotency) { return idempotency.second.endsAt <= state_.now; });
  std::erase_if(state_.outbox, [this](const Owed& owed) {
    return owed.delivery.state != DeliveryState::owed && owed.settledAt + kDeliveryRecordLife <= state_.now;
  });
  nameOnce(swept.requeuedAt);
  return swept;
}

}  // namespace jobq::model

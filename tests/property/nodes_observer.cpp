#include "nodes_observer.h"

#include <utility>
#include <variant>

namespace jobq::model {

InsertResult ObservedStorage::Jobs::insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) {
  const JobSpec copy = job;
  InsertResult result = inner_.insert(std::move(job), policy, terms);
  if (std::holds_alternative<Inserted>(result)) judge_.jobs.inserted(copy);
  return result;
}

RequeueResult ObservedStorage::Jobs::requeue(const JobKey& key, std::uint32_t failedAttempt,
                                             const QueuePolicy& policy) {
  const std::optional<Job> before = inner_.find(key);
  const RequeueResult result = inner_.requeue(key, failedAttempt, policy);
  const bool isFirst = before && before->attempt == failedAttempt;
  if (isFirst && std::holds_alternative<Requeued>(result)) judge_.jobs.requeued(key);
  return result;
}

std::optional<Instant> ObservedStorage::Jobs::setTtl(const JobKey& key, Millis ttl) {
  const std::optional<Instant> expiry = inner_.setTtl(key, ttl);
  if (expiry) judge_.jobs.setTtl(key, *expiry);
  return expiry;
}

ClaimResult ObservedStorage::Leases::claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                                           std::uint64_t mostBytes) {
  ClaimResult claimed = inner_.claim(wants, holder, id, mostBytes);
  for (const ClaimedJob& job : claimed.jobs) endpoints_[job.lease.job] = job.endpoint;
  judge_.jobs.claimed(claimed.jobs, holder);
  return claimed;
}

FinishResult ObservedStorage::Leases::finish(std::span<const EndedAttempt> ends, Durability durability,
                                             const std::optional<FusedClaim>& claim) {
  FinishResult done = inner_.finish(ends, durability, claim);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (done.reports[i] == ReportResult::accepted) judge_.jobs.finished(ends[i].lease, ends[i].outcome);
  }
  return done;
}

// The life of the node goes on, so no rule of lives judges a loss.
SweepResult ObservedStorage::Leases::giveBack(std::span<const ReturnedJob> jobs) {
  std::vector<LeaseRef> leases;
  for (const ReturnedJob& job : jobs) leases.push_back(job.lease);
  const std::vector<LeaseState> states = inner_.states(leases);
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (states[i] == LeaseState::held) judge_.handlers.releasing(leases[i]);
  }
  return inner_.giveBack(jobs);
}

SweepResult ObservedStorage::Leases::sweep(std::size_t max) {
  SweepResult swept = inner_.sweep(max);
  std::vector<std::optional<JobState>> states;
  for (const LeaseRef& lease : swept.stopped) {
    const std::optional<Job> job = storage_.jobs().find({endpoints_[lease.job], lease.job});
    states.push_back(job ? std::optional(job->state) : std::nullopt);
  }
  judge_.jobs.swept(swept, states);
  return swept;
}

Holder ObservedStorage::Nodes::join(std::string_view name, const std::optional<JobKey>& culprit) {
  Holder holder = inner_.join(name, culprit);
  judge_.lives.joined(holder);
  return holder;
}

BeatResult ObservedStorage::Nodes::beat(const Holder& holder, std::span<const EndpointWorkers> workers) {
  const BeatResult result = inner_.beat(holder, workers);
  if (result == BeatResult::extended) judge_.lives.beaten(holder);
  return result;
}

void ObservedStorage::Nodes::leave(const Holder& holder) {
  inner_.leave(holder);
  judge_.lives.left(holder);
}

}  // namespace jobq::model

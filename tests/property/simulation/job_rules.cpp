#include "job_rules.h"

#include <algorithm>
#include <variant>

#include "jobq/transitions.h"

namespace jobq::model {

void JobRules::inserted(const JobSpec& job) {
  jobOfInput_.emplace(job.input, job.id);
  Known& known = jobs_[job.id];
  if (!known.endpoint.empty()) return;  // a repeated call
  known.endpoint = job.endpoint;
  known.executionTimeout = job.policy.executionTimeout;
  known.expiresAt = clock_.now() + job.policy.ttl;
}

void JobRules::claimed(const std::vector<ClaimedJob>& jobs, const Holder& holder) {
  for (const ClaimedJob& job : jobs) {
    Known& known = jobs_[job.lease.job];
    const auto input = jobOfInput_.find(job.input);
    const bool isOther = input == jobOfInput_.end() || input->second != job.lease.job;
    if (isShared_ && isOther) {  // the model judges the keys of one node
      findings_.note("counted twice: " + job.lease.job + " has the input of another job");
    }
    const bool wasUndone = undone_.erase(job.lease.job) == 1;
    if (wasUndone) known.accepted.reset();
    if (job.lease.attempt < known.lastAttempt + (wasUndone ? 0 : 1)) {
      findings_.note(job.lease.job + " began attempt " + std::to_string(job.lease.attempt) + " after attempt " +
                     std::to_string(known.lastAttempt));
    }
    if (known.completed() != nullptr) {
      findings_.note("double run: " + job.lease.job + " was given out after it had succeeded");
    }
    unsynced_.insert(job.lease.job);
    known.endpoint = job.endpoint;
    known.lastAttempt = job.lease.attempt;
    known.claimedAt = clock_.now();
    known.node = holder.node;
    known.epoch = holder.epoch;
  }
}

void JobRules::finished(const LeaseRef& lease, const Outcome& outcome) {
  ++findings_.played["results"];
  Known& known = jobs_[lease.job];
  if (known.lastAttempt != lease.attempt) {
    findings_.note("double run: the result of " + text(lease) + " is accepted, and the last attempt is " +
                   std::to_string(known.lastAttempt));
  }
  if (!isShared_ && known.completed() != nullptr && std::holds_alternative<Completed>(outcome)) {
    findings_.note("double run: " + lease.job + " succeeded twice");
  }
  unsynced_.insert(lease.job);
  known.accepted = outcome;
}

void JobRules::stopped(const LeaseRef& lease, const std::optional<Job>& job) {
  const Known& known = jobs_[lease.job];
  if (job && job->state != JobState::timedOut) return lives_.lost(lease, known.epoch);
  ++findings_.played["timed out or expired"];
  handlers_.noteOverdue(lease);
  if (!job) return expired({known.endpoint, lease.job});
  const Millis ran = clock_.now() - known.claimedAt;
  if (ran < known.executionTimeout) {
    findings_.note("early timeout: " + text(lease) + " ran for " + std::to_string(ran.count()) + " ms");
  }
}

void JobRules::expired(const JobKey& key) {
  if (clock_.now() < jobs_[key.id].expiresAt) findings_.note("early expiry: " + key.id);
}

void JobRules::requeued(const JobKey& key, std::uint32_t failedAttempt) {
  Known& known = jobs_[key.id];
  if (known.lastAttempt > failedAttempt) return;  // a repeated call
  told(key.id, JobState::failed);
  known.accepted.reset();
  known.lastAttempt = failedAttempt + 1;  // a retry counts as an attempt
}

void JobRules::told(const JobId& job, JobState state) {
  Known& known = jobs_[job];
  if (isShared_ || !terminal(state)) return;
  unsynced_.erase(job);
  if (undone_.erase(job) == 1 && state != JobState::completed) known.accepted.reset();
  if (state != JobState::completed && known.completed() != nullptr) {
    findings_.note("a caller is told that " + job + " is " + std::string(nameOf(state)) + " after it had succeeded");
  }
}

std::vector<JobKey> JobRules::undoable() const {
  std::vector<JobKey> jobs;
  for (const JobId& job : undone_) jobs.push_back({jobs_.at(job).endpoint, job});
  return jobs;
}

void JobRules::answered(const std::string& node, const JobId& id, const std::optional<Job>& job) {
  if (job) told(id, job->state);
  ++findings_.played["callers answered"];
  const std::string& ranAt = jobs_[id].node;
  if (!ranAt.empty() && ranAt != node) ++findings_.played["callers answered from another node"];
}

void JobRules::checkEnd(const JobKey& key, const std::optional<Job>& job) {
  const Known& known = jobs_[key.id];
  if (!job) {
    if (known.isAcknowledged && clock_.now() < known.expiresAt) {
      findings_.note("lost: " + key.id + " was acknowledged");
    }
    return;
  }
  if (known.isCancelled && job->state != JobState::cancelled) findings_.note("lost: the cancellation of " + key.id);
  if (!known.accepted) return;
  const Completed* const completed = known.completed();
  const bool isKept = completed == nullptr ? job->state == JobState::failed
                                           : job->state == JobState::completed && job->output == completed->output;
  if (!isKept) {
    findings_.note("lost: the result of " + key.id + ", which is " + std::string(nameOf(job->state)));
  }
}

std::uint64_t JobRules::completions(const EndpointId& endpoint) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(jobs_, [&](const auto& entry) {
    const Known& known = entry.second;
    return known.endpoint == endpoint && known.completed() != nullptr;
  }));
}

}  // namespace jobq::model

#include "nodes_job_rules.h"

#include <algorithm>
#include <variant>

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
    if (input == jobOfInput_.end() || input->second != job.lease.job) {
      findings_.note("counted twice: " + job.lease.job + " has the input of another job");
    }
    if (job.lease.attempt <= known.lastAttempt) {
      findings_.note(text(job.lease) + " follows attempt " + std::to_string(known.lastAttempt));
    }
    if (known.accepted && known.accepted->isCompleted) {
      findings_.note("double run: " + job.lease.job + " was given out after it had succeeded");
    }
    known.lastAttempt = job.lease.attempt;
    known.claimedAt = clock_.now();
    known.node = holder.node;
    known.epoch = holder.epoch;
  }
}

void JobRules::finished(const LeaseRef& lease, const Outcome& outcome) {
  ++findings_.played.results;
  Known& known = jobs_[lease.job];
  if (known.lastAttempt != lease.attempt) {
    findings_.note("double run: the result of " + text(lease) + " is accepted, and the last attempt is " +
                   std::to_string(known.lastAttempt));
  }
  const auto* completed = std::get_if<Completed>(&outcome);
  known.accepted = Accepted{completed != nullptr, completed != nullptr ? completed->output : ""};
}

void JobRules::overdue(const LeaseRef& lease, bool isExpired) {
  ++findings_.played.timedOut;
  handlers_.noteOverdue(lease);
  const Known& known = jobs_[lease.job];
  const Instant now = clock_.now();
  if (!isExpired && now < known.claimedAt + known.executionTimeout) {
    findings_.note("early timeout: " + text(lease) + " ran for " + std::to_string((now - known.claimedAt).count()) +
                   " ms");
  }
  if (isExpired && now < known.expiresAt) findings_.note("early expiry: " + lease.job);
}

void JobRules::swept(const SweepResult& swept, const std::vector<std::optional<JobState>>& states) {
  for (std::size_t i = 0; i < swept.stopped.size(); ++i) {
    const LeaseRef& lease = swept.stopped[i];
    if (states[i] && *states[i] != JobState::timedOut) {
      lives_.lost(lease, jobs_[lease.job].epoch);
    } else {
      overdue(lease, !states[i]);
    }
  }
  for (const JobKey& key : swept.expired) {
    if (clock_.now() < jobs_[key.id].expiresAt) findings_.note("early expiry: " + key.id);
  }
}

void JobRules::answered(const std::string& node, const JobId& job) {
  ++findings_.played.answered;
  const std::string& ranAt = jobs_[job].node;
  if (!ranAt.empty() && ranAt != node) ++findings_.played.answeredElsewhere;
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
  const bool isKept = known.accepted->isCompleted
                          ? job->state == JobState::completed && job->output == known.accepted->output
                          : job->state == JobState::failed;
  if (!isKept) {
    findings_.note("lost: the result of " + key.id + ", which is " + std::string(nameOf(job->state)));
  }
}

std::uint64_t JobRules::completions(const EndpointId& endpoint) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(jobs_, [&](const auto& entry) {
    const Known& known = entry.second;
    return known.endpoint == endpoint && known.accepted && known.accepted->isCompleted;
  }));
}

}  // namespace jobq::model

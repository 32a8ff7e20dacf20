// The rules of jobs in the simulation of nodes.
//
//  - Attempts grow, the storage accepts a result from the last attempt alone, and an accepted result stays.
//  - An attempt is timed out only after its execution timeout, and a job vanishes only after its expiry.
//  - An acknowledged submission, cancellation or result is not lost, and no submission makes two jobs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"
#include "nodes_findings.h"
#include "nodes_handler_rules.h"
#include "nodes_life_rules.h"

namespace jobq::model {

/// Confined to one thread.
class JobRules {
 public:
  /// `clock` is the true time. Everything here outlives the object.
  JobRules(NodesFindings& findings, HandlerRules& handlers, LifeRules& lives, const Clock& clock)
      : findings_(findings), handlers_(handlers), lives_(lives), clock_(clock) {}

  /// Told of each step of the storage.
  void inserted(const JobSpec& job);
  void claimed(const std::vector<ClaimedJob>& jobs, const Holder& holder);
  void finished(const LeaseRef& lease, const Outcome& outcome);
  /// `states` has the states of the jobs of `swept.stopped`; no value for an absent job.
  void swept(const SweepResult& swept, const std::vector<std::optional<JobState>>& states);
  void requeued(const JobKey& key) { jobs_[key.id].accepted.reset(); }
  void setTtl(const JobKey& key, Instant expiry) { jobs_[key.id].expiresAt = expiry; }

  /// Told of the answers to clients.
  void acknowledged(const JobId& job) { jobs_[job].isAcknowledged = true; }
  void cancelled(const JobId& job) { jobs_[job].isCancelled = true; }
  /// Told of the answer to a caller that waits at the node.
  void answered(const std::string& node, const JobId& job);

  /// Checks a job after the end of the schedule; no value if the job is absent.
  void checkEnd(const JobKey& key, const std::optional<Job>& job);
  /// Returns the number of results that completed a job of the endpoint.
  std::uint64_t completions(const EndpointId& endpoint) const;

 private:
  struct Accepted {
    bool isCompleted = false;
    std::string output;
  };
  struct Known {
    EndpointId endpoint;
    bool isAcknowledged = false;
    bool isCancelled = false;
    Instant expiresAt = Instant::max();
    Millis executionTimeout{0};
    std::uint32_t lastAttempt = 0;
    Instant claimedAt{};
    std::string node;         // of the last attempt
    std::uint64_t epoch = 0;  // of the last attempt
    std::optional<Accepted> accepted{};
  };
  void overdue(const LeaseRef& lease, bool isExpired);

  NodesFindings& findings_;
  HandlerRules& handlers_;
  LifeRules& lives_;
  const Clock& clock_;
  std::map<JobId, Known> jobs_;
  std::map<std::string, JobId> jobOfInput_;  // each submission has an input of its own
};

}  // namespace jobq::model

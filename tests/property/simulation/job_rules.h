// The rules of jobs.
//
//  - Attempts grow, the storage accepts a result from the last attempt alone, and an accepted result stays.
//  - An attempt is timed out only after its execution timeout, and a job vanishes only after its expiry.
//  - No caller is told of another end after a success. A loss of power may undo the claims and ends since the last
//    synced step: a further run of such a job may have the same attempt.
//  - An acknowledged submission, cancellation or result is not lost, and no submission makes two jobs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "findings.h"
#include "handler_rules.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"
#include "life_rules.h"

namespace jobq::model {

/// The endpoint of the remote workers.
inline constexpr std::string_view kRemote = "remote";

/// Confined to one thread.
class JobRules {
 public:
  /// Everything here outlives the object.
  struct Deps {
    Findings& findings;
    HandlerRules& handlers;
    LifeRules& lives;
    const Clock& clock;  ///< the true time
  };
  /// `isShared` tells whether an answer of the storage may be late, so that a caller is told of an earlier end.
  JobRules(const Deps& deps, bool isShared)
      : findings_(deps.findings),
        handlers_(deps.handlers),
        lives_(deps.lives),
        clock_(deps.clock),
        isShared_(isShared) {}

  /// Told of each step of the storage.
  void inserted(const JobSpec& job);
  void claimed(const std::vector<ClaimedJob>& jobs, const Holder& holder);
  void finished(const LeaseRef& lease, const Outcome& outcome);
  /// Told of an attempt that a sweep has stopped; no job is an expired job.
  void stopped(const LeaseRef& lease, const std::optional<Job>& job);
  void expired(const JobKey& key);
  void requeued(const JobKey& key, std::uint32_t failedAttempt);
  void setTtl(const JobKey& key, Instant expiry) { jobs_[key.id].expiresAt = expiry; }

  JobKey keyOf(const LeaseRef& lease) const { return {jobs_.at(lease.job).endpoint, lease.job}; }

  /// Told of the answers to clients.
  void acknowledged(const JobId& job) { jobs_[job].isAcknowledged = true; }
  void cancelled(const JobId& job) { jobs_[job].isCancelled = true; }
  /// Told of the answer to a caller that waits at the node; no job is an absent job.
  void answered(const std::string& node, const JobId& id, const std::optional<Job>& job);
  /// Told of the state that a caller reads: an end stays. The state may be FAILED if a loss of power has undone a
  /// success and the job was lost then.
  void told(const JobId& job, JobState state);

  /// Notes that all steps so far survive a loss of power.
  void noteSynced() { unsynced_.clear(); }
  /// Notes a loss of power.
  void losePower() { undone_.merge(std::exchange(unsynced_, {})); }
  /// Returns the jobs possibly undone by a loss of power.
  std::vector<JobKey> undoable() const;

  /// Checks a job after the end of the schedule; no value if the job is absent.
  void checkEnd(const JobKey& key, const std::optional<Job>& job);
  /// Returns the number of results that completed a job of the endpoint.
  std::uint64_t completions(const EndpointId& endpoint) const;

 private:
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
    std::optional<Outcome> accepted{};

    /// Returns the accepted output of a success, if any.
    const Completed* completed() const { return accepted ? std::get_if<Completed>(&*accepted) : nullptr; }
  };

  Findings& findings_;
  HandlerRules& handlers_;
  LifeRules& lives_;
  const Clock& clock_;
  const bool isShared_;
  std::map<JobId, Known> jobs_;
  std::set<JobId> unsynced_;                 // jobs whose claim or end a loss of power would undo
  std::set<JobId> undone_;                   // jobs whose claim or end a loss of power may have undone
  std::map<std::string, JobId> jobOfInput_;  // each submission has an input of its own
};

}  // namespace jobq::model

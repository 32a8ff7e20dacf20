// The rules of handlers.
//
// Two handlers never run one job at the same moment. LeaseKeeper promises that a node stops its handlers 10 s after the
// last beat, and the handlers here obey within 5 s, so a node without a connection keeps the rule. Two handlers are
// excused: the handler of a node that stood still, from the pause until 5 s after the node could notice the pause; and
// the handler of a timed-out or expired attempt, because a retry may follow at once.
//
// A job goes back to the queue only without a handler.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "findings.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq::model {

/// Confined to one thread.
class HandlerRules {
 public:
  /// `clock` is the true time. Both outlive the object.
  HandlerRules(Findings& findings, const Clock& clock) : findings_(findings), clock_(clock) {}

  /// A handler that runs.
  struct Handler {
    std::string node;
    LeaseRef lease;
    Instant begunAt{};
    bool isDead = false;  // with its process
  };
  using Place = std::list<Handler>::iterator;

  Place begins(const std::string& node, const LeaseRef& lease);
  void ends(Place handler) { handlers_.erase(handler); }
  /// Ends the handlers of a dead process.
  void nodeDied(const std::string& node);
  /// Excuses the handlers of the node until `until`. Instant::max() begins an excuse, for all handlers up to now.
  void excuse(const std::string& node, Instant until);
  /// Excuses the handler of an attempt that was timed out or has expired.
  void noteOverdue(const LeaseRef& lease) { overdue_.emplace(lease.job, lease.attempt); }
  /// Judges the return of a job to the queue.
  void releasing(const LeaseRef& lease);
  /// Looks for two handlers of one job.
  void check();

 private:
  struct Excuse {
    Instant since{};
    Instant until{};
  };
  bool isExcused(const Handler& handler) const;

  Findings& findings_;
  const Clock& clock_;
  std::list<Handler> handlers_;
  std::map<std::string, Excuse> excuses_;
  std::set<std::pair<JobId, std::uint32_t>> overdue_;
};

/// Returns the words for an attempt.
std::string text(const LeaseRef& lease);

}  // namespace jobq::model

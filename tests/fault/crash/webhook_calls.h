// The webhooks' side of the checker: the owed calls for ended jobs, and the arrived calls. A call about a job's end has
// to arrive at least once, and always under the same id. No call may come for a job without an end. Pure. Confined to
// one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "history_rules.h"

namespace jobq::fault {

/// An arrived webhook call.
struct ReceivedCall {
  std::string id;  ///< webhook-id
  std::string job;
  std::string status;
  std::string output;
  std::string error;
};

class WebhookCalls {
 public:
  /// Closes a job without further changes. `end` is the job's end; null if the job went without a seen end.
  void closed(const JobHistory& job, const Sight* end);
  void called(const ReceivedCall& call);

  /// Returns a sentence for every wrong call.
  std::vector<std::string> faults() const;
  /// Returns the ids of the jobs without a webhook call about their end.
  std::vector<std::string> missing() const;

  std::uint64_t calls() const { return calls_; }
  std::uint64_t repeated() const { return repeated_; }  ///< calls that had arrived before

 private:
  struct Owed {
    std::optional<Sight> end;
    std::size_t mostEnds = 0;          ///< most ends possible for the job
    std::set<std::uint32_t> returned;  ///< attempts with a returned output
  };

  void judge(const std::string& job, const Owed& owed, std::vector<std::string>& faults) const;

  std::unordered_map<std::string, Owed> owed_;                                      ///< by job
  std::unordered_map<std::string, std::map<std::uint32_t, ReceivedCall>> arrived_;  ///< by job and attempt
  std::vector<std::string> faults_;                                                 ///< faults of single calls
  std::uint64_t calls_ = 0;
  std::uint64_t repeated_ = 0;
};

}  // namespace jobq::fault

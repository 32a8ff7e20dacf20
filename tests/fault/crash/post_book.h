// The webhooks' side of the checker: what is owed for the jobs that ended, and what arrived. A call that says a job's
// end has to arrive at least once; the same end always under the same id; nothing of a job that never ended. Pure. One
// thread.
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

/// A webhook call that arrived.
struct Call {
  std::string id;  ///< webhook-id
  std::string job;
  std::string status;
  std::string output;
  std::string error;
};

class PostBook {
 public:
  /// Nothing more will become of the job. `end`: its end; null when it went without one that anybody saw.
  void closed(const JobHistory& job, const Sight* end);
  void called(const Call& call);

  /// A sentence for every call that should not have been.
  std::vector<std::string> faults() const;
  /// Ids of the jobs whose end nobody was told of yet.
  std::vector<std::string> missing() const;

  std::uint64_t calls() const { return calls_; }
  std::uint64_t repeated() const { return repeated_; }  ///< those of them that had arrived before

 private:
  struct Owed {
    std::optional<Sight> end;
    std::size_t mostEnds = 0;          ///< that it can have had
    std::set<std::uint32_t> returned;  ///< attempts that returned an output
  };

  void judge(const std::string& job, const Owed& owed, std::vector<std::string>& faults) const;

  std::unordered_map<std::string, Owed> owed_;                              ///< by job
  std::unordered_map<std::string, std::map<std::uint32_t, Call>> arrived_;  ///< by job and attempt
  std::vector<std::string> faults_;                                         ///< of calls by themselves
  std::uint64_t calls_ = 0;
  std::uint64_t repeated_ = 0;
};

}  // namespace jobq::fault

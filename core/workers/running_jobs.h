// The running jobs of this node with their stop tokens. A stop on the same node takes effect at once.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq {

/// Any thread. Outlives every Claiming and every Entry.
class RunningJobs {
 public:
  /// Held by a claiming thread from before the claim until the claimed attempts are registered. Stops of unknown
  /// attempts are kept meanwhile, because a job can be cancelled as soon as it is claimed.
  class Claiming {
   public:
    explicit Claiming(RunningJobs& jobs);
    ~Claiming();
    Claiming(const Claiming&) = delete;
    Claiming& operator=(const Claiming&) = delete;

   private:
    RunningJobs& jobs_;
  };

  /// Registers a run for the entry's life.
  class Entry {
   public:
    Entry(RunningJobs& jobs, const LeaseRef& lease);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    /// Returns the stop token of the run. A token that has fired already means a stop before the start: the handler
    /// must not begin.
    std::stop_token token() const { return source_.get_token(); }

   private:
    RunningJobs& jobs_;
    const LeaseRef lease_;
    std::stop_source source_;
  };

  /// Fires the token of the attempt if the attempt runs here, or keeps the stop while a thread is claiming.
  void stop(const LeaseRef& lease);

  /// Returns the attempts that run here.
  std::vector<LeaseRef> leases() const;

 private:
  mutable Mutex mutex_;
  int claiming_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::set<std::pair<JobId, std::uint32_t>> stoppedEarly_ JOBQ_GUARDED_BY(mutex_);
  std::map<std::pair<JobId, std::uint32_t>, std::stop_source> running_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq

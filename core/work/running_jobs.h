// The jobs that run on this node, and how to tell them to stop: on the same node a stop token fires at once.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <stop_token>

#include "jobq/job.h"

namespace jobq {

/// Any thread.
class RunningJobs {
 public:
  /// Registers a run for its scope.
  class Entry {
   public:
    Entry(RunningJobs& jobs, const LeaseRef& lease);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    /// Has fired already when the stop came first: then the handler must not begin.
    std::stop_token token() const { return source_.get_token(); }

   private:
    RunningJobs& jobs_;
    const LeaseRef lease_;
    std::stop_source source_;
  };

  /// Fires the token of that attempt, if it runs here; if it was claimed and is about to run, as soon as it does.
  void stop(const LeaseRef& lease);

 private:
  using Key = std::pair<JobId, std::uint32_t>;

  Mutex mutex_;
  std::map<Key, std::stop_source> running_ JOBQ_GUARDED_BY(mutex_);
  // Stops for attempts that do not run here: most of them never will, but a claim may be on its way.
  std::set<Key> stoppedEarly_ JOBQ_GUARDED_BY(mutex_);
  std::deque<Key> earlyOnes_ JOBQ_GUARDED_BY(mutex_);  // in their order, so that the oldest are forgotten
};

}  // namespace jobq

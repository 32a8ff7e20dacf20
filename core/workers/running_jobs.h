// The jobs that run on this node, and how to tell them to stop: on the same node a stop token fires at once.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stop_token>
#include <utility>

#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq {

/// Any thread.
class RunningJobs {
 public:
  /// Whoever claims holds one until it has registered what it got. Meanwhile a stop of an attempt that is not known yet
  /// is kept for it: a job can be cancelled as soon as it is claimed.
  class Claiming {
   public:
    explicit Claiming(RunningJobs& jobs);
    ~Claiming();
    Claiming(const Claiming&) = delete;
    Claiming& operator=(const Claiming&) = delete;

   private:
    RunningJobs& jobs_;
  };

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

  /// Fires the token of that attempt, if it runs here.
  void stop(const LeaseRef& lease);

 private:
  Mutex mutex_;
  int claiming_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::set<std::pair<JobId, std::uint32_t>> stoppedEarly_ JOBQ_GUARDED_BY(mutex_);
  std::map<std::pair<JobId, std::uint32_t>, std::stop_source> running_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq

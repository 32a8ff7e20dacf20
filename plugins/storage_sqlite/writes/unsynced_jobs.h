// The jobs of Storage::insertAndClaim() and of unsynced ends whose step a loss of power would undo.
#pragma once

#include <chrono>
#include <optional>
#include <set>

#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq::sqlite {

/// Each job is added before its commit, and the writer clears the set after a sync: a reader that finds a job in a
/// snapshot finds the job here too, until the job is on disk. Any thread.
class UnsyncedJobs {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  void add(const JobId& job) {
    Lock lock(mutex_);
    if (jobs_.empty()) since_ = std::chrono::steady_clock::now();
    jobs_.insert(job);
  }
  void clear() {
    Lock lock(mutex_);
    jobs_.clear();
  }
  bool contains(const JobId& job) const {
    Lock lock(mutex_);
    return jobs_.contains(job);
  }
  /// Returns the moment of the first add() since the last clear(), or of a later postpone(). Returns nullopt if no job
  /// is unsynced.
  std::optional<Moment> since() const {
    Lock lock(mutex_);
    return jobs_.empty() ? std::nullopt : std::optional(since_);
  }
  /// Moves since() to `moment`, because a sync has failed.
  void postpone(Moment moment) {
    Lock lock(mutex_);
    since_ = moment;
  }

 private:
  mutable Mutex mutex_;
  std::set<JobId> jobs_ JOBQ_GUARDED_BY(mutex_);
  Moment since_ JOBQ_GUARDED_BY(mutex_){};
};

}  // namespace jobq::sqlite

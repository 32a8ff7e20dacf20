// The reported outcomes of this node without a commit so far. An outcome may wait for the file of its output or for
// earlier writes, so a later sweep may be committed first. A job with an end reported in time must neither become
// TIMED_OUT nor run again because of the wait. The sweep of a different node does not see the report before the
// transaction of the report has locked the job.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq::sql {

/// The set of reports waiting for a commit. Any thread may call the methods. Outlives every Entry.
class ReportsUnderWay {
 public:
  /// A report, from the begin to the end of finish().
  class Entry {
   public:
    Entry(ReportsUnderWay& reports, const LeaseRef& lease) : reports_(reports), place_(reports.add(lease)) {}
    ~Entry() { reports_.remove(place_); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    ReportsUnderWay& reports_;
    const std::multiset<std::pair<JobId, std::uint32_t>>::iterator place_;
  };

  /// Returns whether an outcome of the attempt waits for a commit.
  bool contains(const LeaseRef& lease) const {
    Lock lock(mutex_);
    return waiting_.contains({lease.job, lease.attempt});
  }

 private:
  using Waiting = std::multiset<std::pair<JobId, std::uint32_t>>;

  Waiting::iterator add(const LeaseRef& lease) {
    Lock lock(mutex_);
    return waiting_.emplace(lease.job, lease.attempt);
  }
  void remove(Waiting::iterator place) {
    Lock lock(mutex_);
    waiting_.erase(place);
  }

  mutable Mutex mutex_;
  Waiting waiting_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::sql

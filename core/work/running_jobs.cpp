#include "core/work/running_jobs.h"

namespace jobq {
namespace {

/// Between a claim and its run are microseconds, so this is a great many: more than two whole sweeps can stop.
constexpr std::size_t kMostEarly = 4'096;

}  // namespace

RunningJobs::Entry::Entry(RunningJobs& jobs, const LeaseRef& lease) : jobs_(jobs), lease_(lease) {
  Lock lock(jobs_.mutex_);
  const Key key(lease.job, lease.attempt);
  jobs_.running_.emplace(key, source_);
  // Nobody has the token yet: no callback runs under the lock.
  if (jobs_.stoppedEarly_.erase(key) > 0) source_.request_stop();
}

RunningJobs::Entry::~Entry() {
  Lock lock(jobs_.mutex_);
  jobs_.running_.erase(std::pair(lease_.job, lease_.attempt));
}

void RunningJobs::stop(const LeaseRef& lease) {
  std::stop_source source{std::nostopstate};
  {
    Lock lock(mutex_);
    const Key key(lease.job, lease.attempt);
    const auto found = running_.find(key);
    if (found != running_.end()) {
      source = found->second;
    } else if (stoppedEarly_.insert(key).second) {
      earlyOnes_.push_back(key);
    }
    if (earlyOnes_.size() > kMostEarly) {
      stoppedEarly_.erase(earlyOnes_.front());
      earlyOnes_.pop_front();
    }
  }
  // Callbacks of the handler run inside this call: not under the lock.
  source.request_stop();
}

}  // namespace jobq

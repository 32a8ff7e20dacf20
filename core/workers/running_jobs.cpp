#include "core/workers/running_jobs.h"

namespace jobq {

RunningJobs::Claiming::Claiming(RunningJobs& jobs) : jobs_(jobs) {
  Lock lock(jobs_.mutex_);
  ++jobs_.claiming_;
}

RunningJobs::Claiming::~Claiming() {
  Lock lock(jobs_.mutex_);
  if (--jobs_.claiming_ == 0) jobs_.stoppedEarly_.clear();
}

RunningJobs::Entry::Entry(RunningJobs& jobs, const LeaseRef& lease) : jobs_(jobs), lease_(lease) {
  Lock lock(jobs_.mutex_);
  jobs_.running_.emplace(std::pair(lease.job, lease.attempt), source_);
  if (jobs_.stoppedEarly_.contains(std::pair(lease.job, lease.attempt))) source_.request_stop();
}

RunningJobs::Entry::~Entry() {
  Lock lock(jobs_.mutex_);
  jobs_.running_.erase(std::pair(lease_.job, lease_.attempt));
}

std::vector<LeaseRef> RunningJobs::leases() const {
  Lock lock(mutex_);
  std::vector<LeaseRef> leases;
  leases.reserve(running_.size());
  for (const auto& [lease, source] : running_) leases.push_back({lease.first, lease.second});
  return leases;
}

void RunningJobs::stop(const LeaseRef& lease) {
  std::stop_source source{std::nostopstate};
  {
    Lock lock(mutex_);
    const auto found = running_.find(std::pair(lease.job, lease.attempt));
    if (found != running_.end()) {
      source = found->second;
    } else if (claiming_ > 0) {
      stoppedEarly_.emplace(lease.job, lease.attempt);
    }
  }
  // Called without the lock, because callbacks of the handler run inside this call.
  source.request_stop();
}

}  // namespace jobq

#include "core/workers/run/running_jobs.h"

#include <cstdint>
#include <utility>

#include "core/jobs/deferred_insert.h"

namespace jobq {

RunningJobs::Claiming::Claiming(RunningJobs& jobs) : jobs_(jobs) {
  Lock lock(jobs_.mutex_);
  number_ = *jobs_.claiming_.insert(jobs_.lastClaiming_ + 1).first;
  jobs_.lastClaiming_ = number_;
}

RunningJobs::Claiming::~Claiming() {
  Lock lock(jobs_.mutex_);
  jobs_.claiming_.erase(number_);
  const std::uint64_t oldest = jobs_.claiming_.empty() ? UINT64_MAX : *jobs_.claiming_.begin();
  std::erase_if(jobs_.stoppedEarly_, [oldest](const auto& stop) { return stop.second < oldest; });
}

RunningJobs::Entry::Entry(RunningJobs& jobs, const LeaseRef& lease, std::shared_ptr<DeferredInsert> insert)
    : jobs_(jobs), lease_(lease) {
  Lock lock(jobs_.mutex_);
  Run& run = jobs_.running_[Attempt(lease.job, lease.attempt)];
  run.source = source_;
  run.insert = std::move(insert);
  run.isFenced = jobs_.fenced_;
  if (run.isFenced || jobs_.stoppedEarly_.contains(Attempt(lease.job, lease.attempt))) source_.request_stop();
}

bool RunningJobs::Entry::beginReport() const {
  Lock lock(jobs_.mutex_);
  Run& run = jobs_.running_.at(Attempt(lease_.job, lease_.attempt));
  run.reports = !run.isFenced;
  return run.reports;
}

RunningJobs::Entry::~Entry() {
  Lock lock(jobs_.mutex_);
  const auto run = jobs_.running_.find(Attempt(lease_.job, lease_.attempt));
  if (run->second.isFenced) jobs_.endedFenced_.push_back(lease_);
  jobs_.running_.erase(run);
}

std::vector<LeaseRef> RunningJobs::leases() const {
  Lock lock(mutex_);
  std::vector<LeaseRef> leases;
  leases.reserve(running_.size());
  for (const auto& [attempt, run] : running_) {
    if (!run.insert || run.insert->state() == DeferredInsert::State::stored)
      leases.push_back({attempt.first, attempt.second});
  }
  return leases;
}

void RunningJobs::store(const std::vector<LeaseRef>& leases) const {
  std::vector<std::shared_ptr<DeferredInsert>> inserts;
  {
    Lock lock(mutex_);
    for (const LeaseRef& lease : leases) {
      const auto run = running_.find(Attempt(lease.job, lease.attempt));
      if (run != running_.end() && run->second.insert) inserts.push_back(run->second.insert);
    }
  }
  for (const auto& insert : inserts) {
    try {
      insert->store();
    } catch (const StorageError&) {  // the timer or the end of the run wakes the caller of a lost job
    }
  }
}

std::vector<LeaseRef> RunningJobs::fence() {
  std::vector<LeaseRef> fenced;
  Lock lock(mutex_);
  fenced.reserve(running_.size());
  for (const auto& [attempt, run] : running_) {
    if (!run.isFenced && !run.reports) fenced.push_back({attempt.first, attempt.second});
  }
  for (const LeaseRef& lease : fenced) running_.find(Attempt(lease.job, lease.attempt))->second.isFenced = true;
  fenced_ = true;
  return fenced;
}

void RunningJobs::unfence() {
  Lock lock(mutex_);
  fenced_ = false;
}

std::vector<LeaseRef> RunningJobs::endedFenced() const {
  Lock lock(mutex_);
  return endedFenced_;
}

void RunningJobs::forgetFenced(std::size_t count) {
  Lock lock(mutex_);
  endedFenced_.erase(endedFenced_.begin(), endedFenced_.begin() + static_cast<std::ptrdiff_t>(count));
}

void RunningJobs::stop(const LeaseRef& lease) {
  std::stop_source source{std::nostopstate};
  {
    Lock lock(mutex_);
    const auto found = running_.find(Attempt(lease.job, lease.attempt));
    if (found != running_.end()) {
      source = found->second.source;
    } else if (!claiming_.empty()) {
      stoppedEarly_[Attempt(lease.job, lease.attempt)] = lastClaiming_;
    }
  }
  // Called without the lock, because callbacks of the handler run inside this call.
  source.request_stop();
}

}  // namespace jobq

#include "core/worker_program/jobs_in_hand.h"

#include <algorithm>

namespace jobq::worker {

void JobsInHand::addHandler() {
  Lock lock(mutex_);
  ++handlers_;
  --starting_;
  demandCame_.notifyOne();
}

bool JobsInHand::mayTake() const {
  return starting_ == 0 && waiting_.empty() && busy_ < handlers_ && jobs_.size() < 2 * handlers_;
}

// A single handler is notified at a time, takes a job and wakes the next handler. A handler that is done within the
// time of a wake takes the next job, too, so most wakes are saved.
bool JobsInHand::mustWakeHandler() {
  if (waiting_.empty() || sleeping_ == 0 || isWaking_) return false;
  isWaking_ = true;
  return true;
}

std::optional<JobsInHand::Demand> JobsInHand::awaitDemand() {
  Lock lock(mutex_);
  while (!isTakingOver_ && !mayTake()) demandCame_.wait(mutex_);
  if (isTakingOver_) return std::nullopt;
  return Demand{std::min(handlers_ - busy_, 2 * handlers_ - jobs_.size()), !jobs_.empty()};
}

std::vector<JobId> JobsInHand::add(std::vector<TakenJob> jobs) {
  std::vector<JobId> present;
  Lock lock(mutex_);
  for (TakenJob& each : jobs) {
    const auto job = std::make_shared<JobInHand>(std::move(each));
    JobPtr& known = jobs_[job->job.id];
    if (!known || known->isLost) {
      known = job;
      waiting_.push_back(job);
    } else {
      present.push_back(job->job.id);
    }
  }
  const bool mustWake = mustWakeHandler();
  lock.unlock();
  if (mustWake) jobCame_.notifyOne();
  return present;
}

JobPtr JobsInHand::awaitJob(const JobPtr& ended) {
  Lock lock(mutex_);
  if (ended) --busy_;
  while (waiting_.empty() && !isHandlingOver_) {
    if (mayTake()) demandCame_.notifyOne();
    ++sleeping_;
    jobCame_.wait(mutex_);
    --sleeping_;
    isWaking_ = false;
  }
  if (waiting_.empty()) return nullptr;
  JobPtr job = std::move(waiting_.front());
  waiting_.pop_front();
  ++busy_;
  const bool mustWake = mustWakeHandler();
  if (mayTake()) demandCame_.notifyOne();
  lock.unlock();
  if (mustWake) jobCame_.notifyOne();
  return job;
}

void JobsInHand::remove(std::span<const JobPtr> jobs) {
  Lock lock(mutex_);
  for (const JobPtr& job : jobs) {
    const auto found = jobs_.find(job->job.id);
    if (found != jobs_.end() && found->second == job) jobs_.erase(found);
  }
  if (mayTake()) demandCame_.notifyOne();
}

void JobsInHand::stopJob(const JobId& job) {
  JobPtr stopped;
  {
    Lock lock(mutex_);
    const auto found = jobs_.find(job);
    if (found == jobs_.end()) return;
    stopped = found->second;
  }
  stopped->stop.request_stop();
}

std::vector<JobId> JobsInHand::ids() const {
  std::vector<JobId> ids;
  Lock lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    if (!job->isLost) ids.push_back(id);
  }
  return ids;
}

void JobsInHand::endTaking() {
  Lock lock(mutex_);
  isTakingOver_ = true;
  demandCame_.notifyAll();
}

void JobsInHand::endHandlers() {
  Lock lock(mutex_);
  isHandlingOver_ = true;
  jobCame_.notifyAll();
}

std::size_t JobsInHand::abandonAll() {
  std::map<JobId, JobPtr> jobs;
  {
    Lock lock(mutex_);
    jobs = jobs_;
  }
  for (const auto& [id, job] : jobs) {
    job->isAbandoned = true;
    job->stop.request_stop();
  }
  return jobs.size();
}

}  // namespace jobq::worker

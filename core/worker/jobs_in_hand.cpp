#include "core/worker/jobs_in_hand.h"

namespace jobq::worker {

void JobsInHand::addHandler() {
  Lock lock(mutex_);
  ++handlers_;
  --starting_;
  changed_.notifyAll();
}

std::optional<JobsInHand::Demand> JobsInHand::awaitDemand() {
  Lock lock(mutex_);
  while (!isTakingOver_ && (starting_ > 0 || jobs_.size() >= handlers_)) changed_.wait(mutex_);
  if (isTakingOver_) return std::nullopt;
  return Demand{handlers_ - jobs_.size(), !jobs_.empty()};
}

std::vector<JobId> JobsInHand::add(std::vector<TakenJob> jobs) {
  std::vector<JobId> known;
  Lock lock(mutex_);
  for (TakenJob& each : jobs) {
    const auto job = std::make_shared<JobInHand>(std::move(each));
    if (jobs_.try_emplace(job->job.id, job).second) {
      waiting_.push_back(job);
    } else {
      known.push_back(job->job.id);
    }
  }
  changed_.notifyAll();
  return known;
}

JobPtr JobsInHand::awaitJob() {
  Lock lock(mutex_);
  while (waiting_.empty() && !isHandlingOver_) changed_.wait(mutex_);
  if (waiting_.empty()) return nullptr;
  JobPtr job = std::move(waiting_.front());
  waiting_.pop_front();
  return job;
}

void JobsInHand::remove(const JobPtr& job) {
  Lock lock(mutex_);
  jobs_.erase(job->job.id);
  changed_.notifyAll();
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
  for (const auto& [id, job] : jobs_) ids.push_back(id);
  return ids;
}

void JobsInHand::endTaking() {
  Lock lock(mutex_);
  isTakingOver_ = true;
  changed_.notifyAll();
}

void JobsInHand::endHandlers() {
  Lock lock(mutex_);
  isHandlingOver_ = true;
  changed_.notifyAll();
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

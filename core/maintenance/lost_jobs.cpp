#include "core/maintenance/lost_jobs.h"

#include <optional>
#include <string>

namespace jobq {
namespace {

// Most jobs with a line of their own in the log.
constexpr std::size_t kMostNamed = 1'000;

std::string times(std::uint32_t number) { return std::to_string(number) + (number == 1 ? " time" : " times"); }

// Returns the end of a sentence about the job's state after the sweep, or nullopt if the worker was not lost.
std::optional<std::string> fateOf(const std::optional<Job>& job) {
  if (!job) return "the job has expired since";
  if (job->state == JobState::inQueue)
    return "the job waits again; its worker was lost " + times(job->losses) + " so far";
  if (job->state == JobState::inProgress) return std::nullopt;
  return "the job is " + std::string(nameOf(job->state)) + ": " + job->error;
}

}  // namespace

void LostJobs::collect(const EndpointId& endpoint) {
  JobPage page = jobs_.list({endpoint, JobState::inProgress}, {0, kMostNamed - running_.size()});
  unnamed_ += page.total - page.jobs.size();
  for (Job& job : page.jobs) running_.push_back({std::move(job.endpoint), std::move(job.id)});
}

void LostJobs::report() {
  for (const JobKey& key : running_) {
    const auto fate = fateOf(jobs_.find(key, 0));
    if (!fate) continue;
    log_.write(LogLevel::warning, "job.lost",
               key.id + " of " + key.endpoint + " was running when the server's process died: " + *fate);
  }
  if (unnamed_ == 0) return;
  log_.write(LogLevel::warning, "job.lost",
             std::to_string(unnamed_) + " further jobs were running when the process died");
}

}  // namespace jobq

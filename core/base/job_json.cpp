#include "core/base/job_json.h"

#include "jobq/transitions.h"

namespace jobq {
namespace {

// Upper bound for all members but the texts of the job, in bytes.
constexpr std::size_t kFrame = 256;

// Returns the time in the queue: from queuing (the submission, or the last retry) until a worker claimed the job, or
// until the job ended unclaimed.
std::int64_t delay(const Job& job) {
  const Instant until = job.startedAt ? *job.startedAt : job.finishedAt.value_or(job.queuedAt);
  return (until - job.queuedAt).count();
}

void writeBrief(json::ObjectWriter& out, const JobId& id, JobState state) {
  out.member("id", id);
  out.member("status", nameOf(state));
}

void writeTimes(json::ObjectWriter& out, const Job& job) {
  out.member("delayTime", delay(job));
  if (terminal(job.state)) {
    const bool ran = job.startedAt && job.finishedAt;
    out.member("executionTime", ran ? (*job.finishedAt - *job.startedAt).count() : 0);
  }
  out.member("workerId", job.workerId);
}

const std::string& outputOf(const Job& job) { return job.state == JobState::inProgress ? job.progress : job.output; }

}  // namespace

std::string briefJob(const JobId& id, JobState state) {
  return json::object([&id, state](json::ObjectWriter& out) { writeBrief(out, id, state); });
}

void writeJob(json::ObjectWriter& out, const Job& job) {
  writeBrief(out, job.id, job.state);
  if (job.state != JobState::inQueue) writeTimes(out, job);
  if (job.retries > 0) out.member("retries", job.retries);
  if (!job.error.empty() && terminal(job.state)) out.member("error", job.error);
  if (!outputOf(job).empty() && job.state != JobState::inQueue) out.raw("output", outputOf(job));
}

std::size_t roomFor(const Job& job) { return job.id.size() + outputOf(job).size() + job.error.size() + kFrame; }

std::string wholeJob(const Job& job) {
  std::string out;
  out.reserve(roomFor(job));
  json::appendObject(out, [&job](json::ObjectWriter& object) { writeJob(object, job); });
  return out;
}

}  // namespace jobq

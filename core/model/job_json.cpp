#include "core/model/job_json.h"

#include "jobq/transitions.h"

namespace jobq {
namespace {

// Usual size in bytes of everything except id, output and error. Escapes in the error may need more.
constexpr std::size_t kFrame = 256;

// Returns the milliseconds from the submission or the last retry to the start of the last attempt, or to the end of a
// job that never ran. Attempts that were lost or returned are part of the time.
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
  // A remote worker may have several places: `<worker>:<place>` (core/workers/remote/remote_workers.h).
  out.member("workerId", std::string_view(job.workerId).substr(0, job.workerId.find(':')));
}

// While a job runs, `output` of the API is the last progress.
const std::string& outputOrProgress(const Job& job) {
  return job.state == JobState::inProgress ? job.progress : job.output;
}

}  // namespace

std::string jobSummaryJson(const JobId& id, JobState state) {
  return json::object([&id, state](json::ObjectWriter& out) { writeBrief(out, id, state); });
}

void writeJob(json::ObjectWriter& out, const Job& job) {
  writeBrief(out, job.id, job.state);
  if (job.state != JobState::inQueue) writeTimes(out, job);
  if (job.retries > 0) out.member("retries", job.retries);
  if (!job.error.empty() && terminal(job.state)) out.member("error", job.error);
  if (!outputOrProgress(job).empty() && job.state != JobState::inQueue) out.raw("output", outputOrProgress(job));
}

std::size_t jobJsonSize(const Job& job) {
  return job.id.size() + outputOrProgress(job).size() + job.error.size() + kFrame;
}

std::string jobJson(const Job& job) {
  std::string out;
  out.reserve(jobJsonSize(job));
  json::appendObject(out, [&job](json::ObjectWriter& object) { writeJob(object, job); });
  return out;
}

}  // namespace jobq

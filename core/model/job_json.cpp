#include "core/model/job_json.h"

#include "core/base/clock.h"
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

void writeMoments(json::ObjectWriter& out, const Job& job) {
  out.member("createdAt", toIso8601(job.submittedAt));
  if (job.startedAt) out.member("startedAt", toIso8601(*job.startedAt));
  if (job.finishedAt) out.member("endedAt", toIso8601(*job.finishedAt));
  out.member("keyId", job.apiKeyId);
}

// While a job runs, `output` of the API is the last progress.
const std::string& outputOrProgress(const Job& job) {
  return job.state == JobState::inProgress ? job.progress : job.output;
}

}  // namespace

std::string jobSummaryJson(const JobId& id, JobState state) {
  return json::object([&id, state](json::ObjectWriter& out) { writeBrief(out, id, state); });
}

void writeJob(json::ObjectWriter& out, const Job& job, JobFields more) {
  writeBrief(out, job.id, job.state);
  if (job.state != JobState::inQueue) writeTimes(out, job);
  if (job.retries > 0) out.member("retries", job.retries);
  if (!job.error.empty() && terminal(job.state)) out.member("error", job.error);
  if (!outputOrProgress(job).empty() && job.state != JobState::inQueue) out.raw("output", outputOrProgress(job));
  if (more.times) writeMoments(out, job);
  if (more.input) out.raw("input", job.input);
}

std::size_t jobJsonSize(const Job& job) {
  return job.id.size() + outputOrProgress(job).size() + job.input.size() + job.error.size() + kFrame;
}

std::string jobJson(const Job& job, JobFields more) {
  std::string out;
  out.reserve(jobJsonSize(job));
  json::appendObject(out, [&](json::ObjectWriter& object) { writeJob(object, job, more); });
  return out;
}

}  // namespace jobq

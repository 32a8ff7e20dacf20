#include "core/base/job_json.h"

#include "jobq/json.h"
#include "jobq/transitions.h"

namespace jobq {
namespace {

void addNumber(std::string& out, const char* key, std::int64_t value) {
  out += ",\"";
  out += key;
  out += "\":";
  out += std::to_string(value);
}

// Returns the time in the queue: from queuing (the submission, or the last retry) until a worker claimed the job, or
// until the job ended unclaimed.
std::int64_t delay(const Job& job) {
  const Instant until = job.startedAt ? *job.startedAt : job.finishedAt.value_or(job.queuedAt);
  return (until - job.queuedAt).count();
}

void addTimes(std::string& out, const Job& job) {
  addNumber(out, "delayTime", delay(job));
  if (terminal(job.state)) {
    const bool ran = job.startedAt && job.finishedAt;
    addNumber(out, "executionTime", ran ? (*job.finishedAt - *job.startedAt).count() : 0);
  }
  out += ",\"workerId\":";
  json::appendQuoted(out, job.workerId);
}

}  // namespace

std::string briefJob(const JobId& id, JobState state) {
  std::string out = "{\"id\":";
  json::appendQuoted(out, id);
  out += ",\"status\":\"";
  out += nameOf(state);
  out += "\"}";
  return out;
}

std::string wholeJob(const Job& job) {
  std::string out = briefJob(job.id, job.state);
  out.pop_back();
  const std::string& output = job.state == JobState::inProgress ? job.progress : job.output;
  out.reserve(out.size() + output.size() + job.error.size() + 160);
  if (job.state != JobState::inQueue) addTimes(out, job);
  if (job.retries > 0) addNumber(out, "retries", job.retries);
  if (!job.error.empty() && terminal(job.state)) {
    out += ",\"error\":";
    json::appendQuoted(out, job.error);
  }
  if (!output.empty() && job.state != JobState::inQueue) {
    out += ",\"output\":";
    out += output;
  }
  out += "}";
  return out;
}

}  // namespace jobq

// Calls about one job: /status, /status-sync, /cancel, /retry.
#include "core/base/job_json.h"
#include "core/http/api/error_response.h"
#include "core/http/api/queue_calls.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

JobKey jobOf(const ApiRequest& call) { return {call.endpoint->spec.id, call.params.at("id")}; }

// Bounds of `ttl` in milliseconds from now (core/decisions/jobs.md). JobStore::setTtl applies the floor and the
// ceiling.
constexpr Range kAnyTtl{0, std::int64_t{1} << 53};

// The count of jobs ahead in the queue stops at 100, so that an answer about a job behind a million others stays cheap.
constexpr std::size_t kMostAhead = 100;

// Returns the answer for a queued job: the reason for waiting and the position (1 for the next job, 101 for any
// position beyond 100). Returns no value if the job is no longer queued.
std::optional<ApiResponse> waitingResponse(const QueueDeps& deps, const ApiRequest& call, const Job& job) {
  const auto ahead = deps.jobs.ahead({job.endpoint, job.id}, kMostAhead);
  if (!ahead) return std::nullopt;
  const auto reason = deps.draining ? "draining" : deps.workers.waitReason(*call.endpoint, job.lowPriority);
  return ApiResponse{200, json::object([&](json::ObjectWriter& out) {
                       writeJob(out, job);
                       out.member("queueReason", reason);
                       out.member("queuePosition", *ahead + 1);
                     })};
}

ApiResponse present(const QueueDeps& deps, ApiRequest& call, std::optional<Job> job) {
  while (job && job->state == JobState::inQueue) {
    if (auto response = waitingResponse(deps, call, *job)) return *response;
    job = deps.jobs.find(jobOf(call));  // the job has left the queue meanwhile
  }
  return job ? wholeResponse(deps, call, *job) : noJob(call);
}

}  // namespace

ApiResponse status(const QueueDeps& deps, ApiRequest& call) {
  const JobKey key = jobOf(call);
  const auto ttl = readNumber(call, "ttl", kAnyTtl, OutOfRange::refuse, 0);
  if (!ttl) return badRequest(call, ttl.failure());
  if (const auto refusal = countWellFormed(call)) return *refusal;
  if (call.query.contains("ttl")) {
    if (!deps.jobs.setTtl(key, Millis(*ttl))) return noJob(call);
  }
  return present(deps, call, deps.jobs.find(key));
}

ApiResponse statusSync(const QueueDeps& deps, ApiRequest& call) {
  const auto wait = readWait(deps, call, kWaitDefault);
  if (!wait) return badRequest(call, wait.failure());
  if (const auto refusal = countWellFormed(call)) return *refusal;
  const WaitSlot slot(deps, *wait);
  return present(deps, call, deps.jobs.await(jobOf(call), slot.wait, disconnectSignal(call)));
}

// Changes the state at once, whatever the handler does (core/decisions/jobs.md). A job that has ended stays unchanged.
ApiResponse cancel(const QueueDeps& deps, ApiRequest& call) {
  if (const auto refusal = countWellFormed(call)) return *refusal;
  const JobKey key = jobOf(call);
  const CancelResult result = deps.jobs.cancel(key);
  if (std::holds_alternative<NotFound>(result)) return noJob(call);
  if (const auto* ended = std::get_if<WrongState>(&result)) return {200, jobSummaryJson(key.id, ended->state)};
  const auto& cancelled = std::get<Cancelled>(result);
  if (cancelled.wasRunning) deps.runs.stopRun(cancelled.lease);
  return {200, jobSummaryJson(key.id, JobState::cancelled)};
}

ApiResponse retry(const QueueDeps& deps, ApiRequest& call) {
  if (deps.draining) return unavailable(call.path, "the server is shutting down: try again in a moment");
  if (const auto refusal = countWellFormed(call)) return *refusal;
  const JobKey key = jobOf(call);
  const RequeueResult result = deps.jobs.retry(key, *call.endpoint);
  if (std::holds_alternative<NotFound>(result)) return noJob(call);
  if (const auto* wrong = std::get_if<WrongState>(&result)) {
    return errorResponse(call.path, 400,
                         "job " + key.id + " is " + std::string(nameOf(wrong->state)) +
                             ": only a FAILED or TIMED_OUT job can be retried");
  }
  return {200, jobSummaryJson(key.id, JobState::inQueue)};
}

}  // namespace jobq

// Calls about one job: /status, /status-sync, /cancel, /retry.
#include "core/base/job_json.h"
#include "core/http/api/error_response.h"
#include "core/http/api/queue_calls.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

JobKey jobOf(const ApiRequest& request) { return {request.endpoint->spec.id, request.params.at("id")}; }

// Bounds of `ttl` in milliseconds from now (core/decisions/jobs.md). JobStore::setTtl applies the floor and the
// ceiling.
constexpr Range kAnyTtl{0, std::int64_t{1} << 53};

// The count of jobs ahead in the queue stops at 100, so that an answer about a job behind a million others stays cheap.
constexpr std::size_t kMostAhead = 100;

// Returns the answer for a queued job: the reason for waiting and the position (1 for the next job, 101 for any
// position beyond 100). Returns no value if the job is no longer queued.
std::optional<ApiResponse> waitingResponse(const QueueDeps& deps, const ApiRequest& request, const Job& job) {
  const auto ahead = deps.jobs.ahead({job.endpoint, job.id}, kMostAhead);
  if (!ahead) return std::nullopt;
  const auto reason = deps.draining ? "draining" : deps.workers.waitReason(*request.endpoint, job.lowPriority);
  const auto advice = deps.workers.advice(*request.endpoint);
  return ApiResponse{200, json::object([&](json::ObjectWriter& out) {
                       writeJob(out, job);
                       out.member("queueReason", reason);
                       if (advice) out.member("queueAdvice", *advice);
                       out.member("queuePosition", *ahead + 1);
                     })};
}

ApiResponse present(const QueueDeps& deps, ApiRequest& request, std::optional<Job> job) {
  while (job && job->state == JobState::inQueue) {
    if (auto response = waitingResponse(deps, request, *job)) return *response;
    job = deps.jobs.find(jobOf(request));  // the job has left the queue meanwhile
  }
  return job ? wholeResponse(deps, request, *job) : noJob(request);
}

}  // namespace

RouteResult status(const QueueDeps& deps, ApiRequest& request) {
  const JobKey key = jobOf(request);
  const auto ttl = readNumber(request, "ttl", kAnyTtl, OutOfRange::refuse, 0);
  if (!ttl) return badRequest(request, ttl.failure());
  if (const auto refusal = countWellFormed(request)) return *refusal;
  if (request.query.contains("ttl")) {
    if (!deps.jobs.setTtl(key, Millis(*ttl))) return noJob(request);
  }
  return present(deps, request, deps.jobs.find(key));
}

namespace {

/// A call of /status-sync, which waits for the end of the job.
class AwaitedStatus final : public PendingCall {
 public:
  AwaitedStatus(const QueueDeps& deps, const ApiRequest& request, Millis wait)
      : deps_(deps), slot_(deps, wait), wait_(deps.jobs.await(jobOf(request), slot_.wait)) {}

  std::optional<ApiResponse> poll(ApiRequest& request) override {
    auto result = wait_->poll(waitingCaller(request));
    if (!result) return std::nullopt;
    return present(deps_, request, std::move(result->job));
  }

  bool isBrief() const noexcept override { return true; }

 private:
  const QueueDeps& deps_;
  const WaitSlot slot_;
  const std::unique_ptr<JobWait> wait_;
};

}  // namespace

RouteResult statusSync(const QueueDeps& deps, ApiRequest& request) {
  const auto wait = readWait(deps, request, kWaitDefault);
  if (!wait) return badRequest(request, wait.failure());
  if (const auto refusal = countWellFormed(request)) return *refusal;
  return begin(std::make_unique<AwaitedStatus>(deps, request, *wait), request);
}

// Changes the state at once, whatever the handler does (core/decisions/jobs.md). A job that has ended stays unchanged.
RouteResult cancel(const QueueDeps& deps, ApiRequest& request) {
  if (const auto refusal = countWellFormed(request)) return *refusal;
  const JobKey key = jobOf(request);
  const CancelResult result = deps.jobs.cancel(key);
  if (std::holds_alternative<NotFound>(result)) return noJob(request);
  if (const auto* ended = std::get_if<WrongState>(&result))
    return ApiResponse{200, jobSummaryJson(key.id, ended->state)};
  const LeaseRef& lease = std::get<Cancelled>(result).lease;
  if (lease.attempt > 0) deps.runs.stopRun(lease);  // attempt 0: no worker has had the job
  return ApiResponse{200, jobSummaryJson(key.id, JobState::cancelled)};
}

RouteResult retry(const QueueDeps& deps, ApiRequest& request) {
  if (deps.draining) return unavailable(request.path, "the server is shutting down: try again in a moment");
  if (const auto refusal = countWellFormed(request)) return *refusal;
  const JobKey key = jobOf(request);
  const RequeueResult result = deps.jobs.retry(key, *request.endpoint);
  if (std::holds_alternative<NotFound>(result)) return noJob(request);
  if (const auto* wrong = std::get_if<WrongState>(&result)) {
    return errorResponse(request.path, 400,
                         "job " + key.id + " is " + std::string(nameOf(wrong->state)) +
                             ": only a FAILED or TIMED_OUT job can be retried");
  }
  return ApiResponse{200, jobSummaryJson(key.id, JobState::inQueue)};
}

}  // namespace jobq

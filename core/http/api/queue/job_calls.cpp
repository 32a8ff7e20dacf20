// Calls about one job: /status, /status-sync, /cancel, /retry.
#include <Poco/StringTokenizer.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/sha256.h"
#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/queue/event_stream.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/model/job_json.h"
#include "jobq/json_writer.h"
#include "jobq/transitions.h"

namespace jobq {
namespace {

// Bounds of `ttl` in milliseconds from now (core/http/API.md, "/status"). JobStore::setTtl applies the floor and the
// ceiling.
constexpr Range kAnyTtl{0, std::int64_t{1} << 53};

// The count of jobs ahead in the queue stops at 100, so that an answer about a job behind a million others stays cheap.
constexpr std::size_t kMostAhead = 100;

// Returns the object of a queued job: the reason for waiting and the position (1 for the next job, 101 for any position
// beyond 100). Returns no value if the job is no longer queued.
std::optional<std::string> queuedJobJson(const QueueDeps& deps, const ApiRequest& request, const Job& job,
                                         JobFields more = {}) {
  const auto ahead = deps.jobs.ahead({job.endpoint, job.id}, kMostAhead);
  if (!ahead) return std::nullopt;
  const auto reason = deps.draining ? "draining" : deps.workers.waitReason(*request.endpoint, job.lowPriority);
  const auto advice = deps.workers.advice(*request.endpoint, readerOf(request));
  return json::object([&](json::ObjectWriter& out) {
    writeJob(out, job, more);
    out.member("queueReason", reason);
    if (advice) out.member("queueAdvice", *advice);
    out.member("queuePosition", *ahead + 1);
  });
}

JobExtent extentOf(JobFields members) { return members.input ? JobExtent::input : JobExtent::result; }

ApiResponse present(const QueueDeps& deps, ApiRequest& request, FoundJob found, JobFields more = {}) {
  while (found.job && found.hasRoom && found.job->state == JobState::inQueue) {
    if (auto object = queuedJobJson(deps, request, *found.job, more)) {
      request.room.noteText(object->size());
      return {200, *std::move(object)};
    }
    found = deps.jobs.find(jobOf(request), &request.room, extentOf(more));  // the job has left the queue meanwhile
  }
  return found.job ? wholeResponse(request, std::move(found), more) : noJob(request);
}

Poco::StringTokenizer splitNames(const std::string& names) {
  return {names, ",", Poco::StringTokenizer::TOK_TRIM | Poco::StringTokenizer::TOK_IGNORE_EMPTY};
}

/// Reads `include`: names of further members, separated by commas.
Result<JobFields> readMembers(const ApiRequest& request) {
  const auto names = readText(request, "include");
  if (!names) return names.failure();
  JobFields members;
  for (const std::string& name : splitNames(*names)) {
    if (name == "input") {
      members.input = true;
    } else if (name == "times") {
      members.times = true;
    } else {
      return invalid("include names input, times or both with a comma between them, not " + clipped(name), "include");
    }
  }
  return members;
}

// Returns the id of the event that shows the job as it is now. Another attempt, state or progress has another id. The
// digest of a large progress takes milliseconds.
std::string eventIdOf(const Job& job) {
  std::string id = std::to_string(job.attempt) + "-" + std::string(nameOf(job.state));
  if (job.state == JobState::inProgress && !job.progress.empty()) id += "-" + sha256(job.progress).substr(0, 16);
  return id;
}

/// The answer of /status as a stream of events.
class StatusEvents final : public ChangeEventStream {
 public:
  StatusEvents(const QueueDeps& deps, Budget::Reservation place, JobKey key, std::string lastId)
      : ChangeEventStream(deps, std::move(place), std::move(key)), lastId_(std::move(lastId)) {}

 private:
  NextReading readJob(ApiRequest& request) override {
    FoundJob found = deps().jobs.find(key(), &request.room);
    if (!found.job) {
      endStream();
      return NextReading::afterChange;
    }
    if (!found.hasRoom) return NextReading::soon;
    const JobState state = found.job->state;
    const Seen now{found.job->attempt, state, std::hash<std::string_view>()(found.job->progress)};
    if (seen_ == now && !terminal(state)) return afterQuietReading(state);
    seen_ = now;
    std::string id = eventIdOf(*found.job);
    // A client that has seen the end already reads the end again, because an answer must have an event.
    if (id == lastId_ && !terminal(state)) return afterQuietReading(state);
    auto object =
        state == JobState::inQueue ? queuedJobJson(deps(), request, *found.job) : std::optional(jobJson(*found.job));
    if (!object) {  // the job has left the queue meanwhile
      seen_.reset();
      return NextReading::atOnce;
    }
    found.job.reset();
    events().add("status", id, *object);
    object.reset();
    lastId_ = std::move(id);
    if (terminal(state)) endStream();
    return afterQuietReading(state);
  }

  /// The parts of a job that change what its event shows, with a quick hash of the progress.
  struct Seen {
    std::uint32_t attempt = 0;
    JobState state = JobState::inQueue;
    std::size_t progress = 0;

    bool operator==(const Seen&) const = default;
  };

  std::string lastId_;
  std::optional<Seen> seen_;  // of the last reading
};

RouteResult statusEvents(const QueueDeps& deps, ApiRequest& request, Budget::Reservation place) {
  return begin(std::make_unique<StatusEvents>(deps, std::move(place), jobOf(request), request.lastEventId), request);
}

}  // namespace

RouteResult status(const QueueDeps& deps, ApiRequest& request) {
  const JobKey key = jobOf(request);
  const auto ttl = readNumber(request, "ttl", kAnyTtl, OutOfRange::refuse, 0);
  if (!ttl) return badRequest(request, ttl.failure());
  const auto members = readMembers(request);
  if (!members) return badRequest(request, members.failure());
  const bool asEvents = asksForEvents(request);
  if (asEvents && request.query.contains("include")) {
    return badRequest(request,
                      invalid("include is for an answer at once: leave it out for a stream of events", "include"));
  }
  Budget::Reservation place;
  if (auto refusal = asEvents ? admitEventStream(deps, request, place) : countWellFormed(request)) {
    return *std::move(refusal);
  }
  if (request.query.contains("ttl")) {
    if (!deps.jobs.setTtl(key, Millis(*ttl))) return noJob(request);
  }
  if (asEvents) return statusEvents(deps, request, std::move(place));
  return present(deps, request, deps.jobs.find(key, &request.room, extentOf(*members)), *members);
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
    return present(deps_, request, *std::move(result));
  }

  RequestHandler::Progress progress() const noexcept override { return RequestHandler::Progress::waitsBriefly; }

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

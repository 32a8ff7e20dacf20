// /run and /runsync: validation, admission and submission of a job.
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/sha256.h"
#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/jobs/admission.h"
#include "core/jobs/later_submission.h"
#include "core/model/job_json.h"

namespace jobq {
namespace {

constexpr std::size_t kMaxIdempotencyKey = 255;

// Reads the header Idempotency-Key (core/decisions/jobs.md).
Result<std::optional<Idempotency>> readIdempotencyKey(const ApiRequest& request) {
  if (!request.idempotencyKey) return std::optional<Idempotency>();
  const std::string& key = *request.idempotencyKey;
  const bool printable = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (key.empty() || key.size() > kMaxIdempotencyKey || !printable) {
    return invalid("Idempotency-Key must be 1 to 255 printable ASCII characters without blanks");
  }
  return std::optional(Idempotency{key, sha256(request.body)});
}

// Returns the value of the header Warning (RFC 9111, 5.5) about keys of the body without effect; empty without such
// keys.
std::string warningOf(const std::vector<std::string>& ignoredKeys) {
  constexpr std::size_t kMostNamed = 3;
  if (ignoredKeys.empty()) return "";
  std::string named;
  for (std::size_t i = 0; i < std::min(ignoredKeys.size(), kMostNamed); ++i) {
    named += (named.empty() ? "" : ", ") + clipped(ignoredKeys[i]);
  }
  for (char& c : named) {
    if (c < ' ' || c > '~' || c == '"' || c == '\\') c = '?';
  }
  const std::size_t rest = ignoredKeys.size() - std::min(ignoredKeys.size(), kMostNamed);
  return "299 jobq \"unknown keys were ignored: " + named +
         (rest == 0 ? "\"" : " and " + std::to_string(rest) + " more\"");
}

}  // namespace

ApiResponse keyConflict(const ApiRequest& request) {
  return errorResponse(request.path, 400,
                       "this Idempotency-Key came with another body within 24 hours: send a new key");
}

SubmissionResult acceptSubmission(const QueueDeps& deps, ApiRequest& request, std::optional<Millis> syncWait) {
  if (deps.draining) return unavailable(request.path, "the server is shutting down: try again in a moment");
  auto idempotency = readIdempotencyKey(request);
  if (!idempotency) return badRequest(request, idempotency.failure());
  auto result = readSubmission(std::move(request.body), *request.endpoint, request.key->id, syncWait, deps.rules);
  if (!result) return badRequest(request, result.failure());
  request.warning = warningOf(result->ignoredKeys);
  AcceptedSubmission accepted{std::move(result->job), *std::move(idempotency)};
  // Filters judge a job once: a filter that counts would refuse the repetition of a job accepted before. Without
  // filters the insert itself detects the repetition, and a query here would cost a read.
  if (accepted.idempotency && !request.endpoint->filters.empty()) {
    const auto before = deps.jobs.findByIdempotencyKey(*request.endpoint, request.key->id, *accepted.idempotency);
    if (before && std::holds_alternative<KeyConflict>(*before)) return keyConflict(request);
    if (before) {
      if (auto refusal = countWellFormed(request)) return std::move(*refusal);
      request.bodyMemory.release();
      return std::get<Duplicate>(*before);
    }
  }
  // The rate limit comes before the filters, which may count jobs themselves: a job refused by the rate must not use up
  // a quota.
  if (auto refusal = countWellFormed(request)) return std::move(*refusal);
  if (const auto admitted = admit(accepted.job, *request.endpoint); !admitted) {
    const Refusal& refusal = admitted.failure();
    if (refusal.status == 429) return tooMany(request.path, refusal.message, refusal.retryAfter);
    return errorResponse(request.path, refusal.status, refusal.message);
  }
  return accepted;
}

namespace {

// Without room for the output at the end of the wait the answer is IN_QUEUE: the caller asks for the job later, and
// submits no second job.
ApiResponse synced(ApiRequest& request, const JobId& id, FoundJob found) {
  if (!found.hasRoom) return {200, jobSummaryJson(id, JobState::inQueue)};
  if (found.job) return wholeResponse(request, std::move(found));
  return errorResponse(request.path, 404,
                       "job " + id + " is gone: it was purged, outlived its policy.ttl, or its result has expired");
}

/// A call of /runsync behind the submission, which waits for the end of the job.
class AwaitedRun final : public PendingCall {
 public:
  AwaitedRun(WaitSlot slot, JobId id, std::unique_ptr<JobWait> wait)
      : slot_(std::move(slot)), id_(std::move(id)), wait_(std::move(wait)) {}

  /// Answers IN_QUEUE if the storage fails, because the job is stored: on 503 the client would submit the job a second
  /// time.
  void answerFaultsAsQueued() noexcept { isStored_ = true; }

  std::optional<ApiResponse> poll(ApiRequest& request) override {
    try {
      auto result = wait_->poll(waitingCaller(request));
      if (!result) return std::nullopt;
      return synced(request, id_, *std::move(result));
    } catch (const StorageError&) {
      if (isStored_) return ApiResponse{200, jobSummaryJson(id_, JobState::inQueue)};
      throw;
    }
  }

  RequestHandler::Progress progress() const noexcept override { return RequestHandler::Progress::waitsBriefly; }

 private:
  const WaitSlot slot_;
  const JobId id_;
  const std::unique_ptr<JobWait> wait_;
  bool isStored_ = false;
};

ApiResponse submitted(const ApiRequest& request, JobId id, const InsertResult& result) {
  if (std::holds_alternative<KeyConflict>(result)) return keyConflict(request);
  if (const auto* first = std::get_if<Duplicate>(&result)) id = first->id;
  return ApiResponse{200, jobSummaryJson(id, JobState::inQueue)};
}

/// A call of /run behind the submission, on the reactor thread.
class LaterRun final : public PendingCall {
 public:
  /// `memory` is the budget of the body: the storage has the body until the end of the insert.
  LaterRun(JobId id, BodyMemory::Reservation memory, std::unique_ptr<LaterSubmission> submission)
      : id_(std::move(id)), memory_(std::move(memory)), submission_(std::move(submission)) {}

  std::optional<ApiResponse> poll(ApiRequest& request) override {
    const auto result = submission_->poll(request.client->call());
    if (!result) return std::nullopt;
    return submitted(request, id_, *result);
  }

  RequestHandler::Progress progress() const noexcept override { return RequestHandler::Progress::waitsForStorage; }

 private:
  const JobId id_;
  const BodyMemory::Reservation memory_;
  const std::unique_ptr<LaterSubmission> submission_;
};

}  // namespace

RouteResult run(const QueueDeps& deps, ApiRequest& request) {
  auto submission = acceptSubmission(deps, request, std::nullopt);
  if (auto* refusal = std::get_if<ApiResponse>(&submission)) return std::move(*refusal);
  if (const auto* first = std::get_if<Duplicate>(&submission))
    return ApiResponse{200, jobSummaryJson(first->id, JobState::inQueue)};
  auto& [job, idempotency] = std::get<AcceptedSubmission>(submission);
  JobId id = job.id;
  if (!request.client->mayBlock()) {
    auto later = deps.later.submit(std::move(job), request.endpoint, std::move(idempotency));
    return begin(std::make_unique<LaterRun>(std::move(id), std::move(request.bodyMemory), std::move(later)), request);
  }
  const InsertResult result = deps.jobs.submit(std::move(job), *request.endpoint, idempotency);
  request.bodyMemory.release();
  return submitted(request, std::move(id), result);
}

RouteResult runsync(const QueueDeps& deps, ApiRequest& request) {
  const auto wait = readWait(deps, request, kWaitDefault);
  if (!wait) return badRequest(request, wait.failure());
  auto submission = acceptSubmission(deps, request, *wait);
  if (auto* refusal = std::get_if<ApiResponse>(&submission)) return std::move(*refusal);
  WaitSlot slot(deps, *wait);
  if (const auto* first = std::get_if<Duplicate>(&submission)) {
    auto awaited = deps.jobs.await({request.endpoint->spec.id, first->id}, slot.wait);
    return begin(std::make_unique<AwaitedRun>(std::move(slot), first->id, std::move(awaited)), request);
  }
  auto& [job, idempotency] = std::get<AcceptedSubmission>(submission);
  JobId id = job.id;
  auto [inserted, awaited, isDurable] =
      deps.jobs.submitAwaited(std::move(job), *request.endpoint, idempotency, slot.wait);
  // A body counts as memory in use until the storage has the job: 400 bodies waiting for one writer would be 8 GB.
  request.bodyMemory.release();
  if (std::holds_alternative<KeyConflict>(inserted)) return keyConflict(request);
  if (const auto* first = std::get_if<Duplicate>(&inserted)) id = first->id;
  auto call = std::make_unique<AwaitedRun>(std::move(slot), std::move(id), std::move(awaited));
  if (isDurable) call->answerFaultsAsQueued();
  return begin(std::move(call), request);
}

}  // namespace jobq

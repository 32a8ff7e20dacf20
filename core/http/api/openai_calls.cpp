// /openai/…: the calls of OpenAI's clients as jobs (core/decisions/openai.md). A handler gets the route and the body,
// and gives one JSON object, or pieces of an event stream.
#include <algorithm>
#include <exception>
#include <iterator>

#include "core/base/json_object.h"
#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/openai_answer.h"
#include "core/http/api/queue_calls.h"
#include "core/jobs/chunk_feed.h"
#include "jobq/transitions.h"

namespace jobq {
namespace {

/// Longest time of a call; the clients give up after as long.
constexpr Millis kLongest{600'000};

/// A comment line in an open stream, so that proxies and clients see that the job goes on.
constexpr Millis kQuiet{15'000};
constexpr const char* kStillThere = ": the job goes on\n\n";

constexpr std::size_t kPiece = 1UL << 20;
constexpr std::size_t kPieces = 20;  // of chunks in a whole answer

bool isRoute(std::string_view route) {
  return std::all_of(route.begin(), route.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._:-").find(c) != std::string_view::npos;
  });
}

void cancelJob(const QueueDeps& deps, const JobKey& key) noexcept {
  try {
    const CancelResult result = deps.jobs.cancel(key);
    const auto* cancelled = std::get_if<Cancelled>(&result);
    if (cancelled != nullptr && cancelled->lease.attempt > 0) deps.runs.stopRun(cancelled->lease);
  } catch (const std::exception&) {
    // The storage fails: the job goes on to its end or its execution timeout.
  }
}

ApiResponse goneJob(const JobKey& key) {
  return {500, openAiError(500, "the job " + key.id + " was purged, or has outlived its policy.ttl")};
}

/// The storage fails while the job runs. A repeated call would run the job a second time.
ApiResponse lostJob(const JobKey& key, const StorageError& error) {
  return {503,
          openAiError(503, "the state of the job " + key.id + " cannot be read now: " + std::string(error.what())),
          {{"x-should-retry", "false"}}};
}

/// A call of /openai behind the submission. Cancels its job if the client leaves or the call takes too long.
class AwaitedOpenAi : public PendingCall {
 public:
  AwaitedOpenAi(const QueueDeps& deps, WaitSlot slot, JobKey key)
      : deps_(deps), slot_(std::move(slot)), key_(std::move(key)) {}
  ~AwaitedOpenAi() override {
    if (!hasEnded_) cancelJob(deps_, key_);
  }

  std::optional<ApiResponse> poll(ApiRequest& request) final {
    try {
      return pollJob(request);
    } catch (const StorageError& error) {
      return lostJob(key_, error);
    }
  }

 protected:
  virtual std::optional<ApiResponse> pollJob(ApiRequest& request) = 0;

  const QueueDeps& deps() const noexcept { return deps_; }
  const JobKey& key() const noexcept { return key_; }
  Millis wait() const noexcept { return slot_.wait; }
  /// Notes that the job has ended, so nothing is left to cancel.
  void noteEnd() noexcept { hasEnded_ = true; }

  /// Returns the answer for a job that goes on at the end of the wait, and is cancelled.
  ApiResponse unfinished(const ApiRequest& request) const {
    if (deps_.draining) return unavailable(request.path, "the server is shutting down: try again in a moment");
    return lateOpenAiAnswer();
  }
  ApiResponse failed(const std::optional<Job>& job) const { return job ? failedOpenAiAnswer(*job) : goneJob(key_); }

 private:
  const QueueDeps& deps_;
  const WaitSlot slot_;
  const JobKey key_;
  bool hasEnded_ = false;
};

/// A call that is answered with the whole result.
class WholeOpenAi final : public AwaitedOpenAi {
 public:
  WholeOpenAi(const QueueDeps& deps, WaitSlot slot, JobKey key, std::unique_ptr<JobWait> wait)
      : AwaitedOpenAi(deps, std::move(slot), std::move(key)), wait_(std::move(wait)) {}

  bool isBrief() const noexcept override { return true; }

 private:
  std::optional<ApiResponse> pollJob(ApiRequest& request) override {
    const auto result = wait_->poll(waitingCaller(request));
    if (!result) return std::nullopt;
    const std::optional<Job>& job = result->job;
    if (job && !terminal(job->state)) return unfinished(request);
    noteEnd();
    if (!job || job->state != JobState::completed) return failed(job);
    std::vector<Chunk> chunks;
    if (!readChunks(request, chunks)) return noRoom(request);
    ApiResponse response = wholeOpenAiAnswer(chunks, job->output);
    if (!drawOn(request, response.body.size())) return noRoom(request);
    return response;
  }

  // Returns false if the chunks have no room.
  bool readChunks(ApiRequest& request, std::vector<Chunk>& chunks) {
    std::uint64_t next = 0;
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      if (piece > 0 && !request.answerMemory.grow(deps().answerMemory, kPiece)) return false;
      auto page = deps().jobs.chunks({key(), next, kPiece});
      if (!page) return true;
      std::move(page->chunks.begin(), page->chunks.end(), std::back_inserter(chunks));
      next = page->next;
      if (!page->more) return true;
    }
    return false;
  }

  bool drawOn(ApiRequest& request, std::size_t size) {
    return size <= kFreeBody || request.answerMemory.grow(deps().answerMemory, size);
  }

  static ApiResponse noRoom(const ApiRequest& request) {
    ApiResponse response =
        unavailable(request.path,
                    "the answer is large, and too many large ones are being read now, or it has over 20 MB of chunks");
    response.headers.emplace_back("x-should-retry", "false");
    return response;
  }

  const std::unique_ptr<JobWait> wait_;
};

/// A call that is answered with an event stream. The head waits for the first chunk, so that an early error has its
/// status.
class StreamedOpenAi final : public AwaitedOpenAi {
 public:
  StreamedOpenAi(const QueueDeps& deps, WaitSlot slot, JobKey key)
      : AwaitedOpenAi(deps, std::move(slot), std::move(key)),
        feed_(deps.jobs.followChunks(this->key())),
        end_(deps.jobs.now() + wait()) {}

  std::optional<BodyPart> nextPart(ApiRequest& request) override {
    try {
      return pollPart(request);
    } catch (const StorageError&) {
      return BodyPart{OpenAiEvents::error("the storage of the server failed while the job ran"), true};
    }
  }

 private:
  std::optional<ApiResponse> pollJob(ApiRequest& request) override {
    const auto result = feed_->poll(end_, waitingCaller(request), kPiece);
    if (!result) return std::nullopt;
    if (result->isOver) return unfinished(request);
    if (!result->page || result->page->chunks.empty()) return endedWithoutChunks();
    if (isOpenAiError(result->page->chunks.front().output)) return wholeOpenAiAnswer(result->page->chunks, "");
    return opened(eventsOf(result->page->chunks));
  }

  ApiResponse endedWithoutChunks() {
    noteEnd();
    const std::optional<Job> job = deps().jobs.find(key());
    if (!job || job->state != JobState::completed) return failed(job);
    if (isOpenAiError(job->output)) return wholeOpenAiAnswer({}, job->output);
    // The last part follows at once: nextPart() finds the end of the job.
    return opened(events_.add(job->output));
  }

  static ApiResponse opened(std::string events) {
    ApiResponse response{200, std::move(events)};
    response.headers = {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}};
    response.isOpen = true;
    return response;
  }

  std::optional<BodyPart> pollPart(ApiRequest& request) {
    if (deps().jobs.now() >= end_) return BodyPart{OpenAiEvents::error("the job took longer than 600 seconds"), true};
    const auto result = feed_->poll(std::min(end_, deps().jobs.now() + kQuiet), waitingCaller(request), kPiece);
    if (!result) return std::nullopt;
    if (result->isOver) return BodyPart{kStillThere, request.client->hasLeft() || deps().draining};
    if (result->hasRestarted) {
      return BodyPart{OpenAiEvents::error("the worker of the job was lost, and its answer begins anew: ask again"),
                      true};
    }
    if (result->page && !result->page->chunks.empty()) return BodyPart{eventsOf(result->page->chunks), false};
    noteEnd();
    if (result->page && result->page->state == JobState::completed) return BodyPart{events_.end(), true};
    const std::optional<Job> job = deps().jobs.find(key());
    return BodyPart{OpenAiEvents::error(job && !job->error.empty() ? job->error : "the job was stopped"), true};
  }

  std::string eventsOf(const std::vector<Chunk>& chunks) {
    std::string events;
    for (const Chunk& chunk : chunks) events += events_.add(chunk.output);
    return events;
  }

  const std::unique_ptr<ChunkFeed> feed_;
  const Instant end_;
  OpenAiEvents events_;
};

}  // namespace

RouteResult openAi(const QueueDeps& deps, ApiRequest& request) {
  if (request.method == "HEAD") return errorResponse(request.path, 405, "HEAD is not allowed here: use GET");
  const std::string route = "/" + request.params.at("route");
  if (!isRoute(route)) {
    return errorResponse(request.path, 404,
                         "there is no route " + clipped(route) + ": use letters, digits and . _ : -");
  }
  if (request.method == "POST" && !isJsonObject(request.body)) {
    return errorResponse(request.path, 400, "the body must be a JSON object");
  }
  const auto asked = request.method == "POST" ? asksForStream(request.body) : false;
  if (!asked) return errorResponse(request.path, 400, "stream must be true, false or null");
  const bool isStream = *asked;
  const std::string input = openAiInput(route, request.body);
  request.body = json::object([&](json::ObjectWriter& out) { out.raw("input", input); });
  WaitSlot slot(deps, kLongest);
  if (slot.wait == Millis(0)) return unavailable(request.path, "too many calls wait (server.waiting): try again soon");
  auto submission = acceptSubmission(deps, request, kWaitMax);
  if (auto* refusal = std::get_if<ApiResponse>(&submission)) return std::move(*refusal);
  const EndpointId& endpoint = request.endpoint->spec.id;
  std::unique_ptr<JobWait> wait;
  JobId id;
  if (const auto* first = std::get_if<Duplicate>(&submission)) {
    id = first->id;
    if (!isStream) wait = deps.jobs.await({endpoint, id}, slot.wait);
  } else {
    auto& [job, idempotency] = std::get<AcceptedSubmission>(submission);
    id = job.id;
    auto submitted = deps.jobs.submitAwaited(std::move(job), *request.endpoint, idempotency, slot.wait);
    request.bodyMemory.release();
    if (std::holds_alternative<KeyConflict>(submitted.inserted)) return keyConflict(request);
    if (const auto* first = std::get_if<Duplicate>(&submitted.inserted)) id = first->id;
    wait = std::move(submitted.wait);
  }
  if (isStream) return begin(std::make_unique<StreamedOpenAi>(deps, std::move(slot), JobKey{endpoint, id}), request);
  return begin(std::make_unique<WholeOpenAi>(deps, std::move(slot), JobKey{endpoint, id}, std::move(wait)), request);
}

}  // namespace jobq

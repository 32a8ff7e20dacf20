// /openai/…: the calls of OpenAI's clients as jobs (core/decisions/openai.md). A handler gets the route and the body,
// and gives a JSON object, or pieces of an event stream.
#include <algorithm>
#include <exception>
#include <iterator>

#include "core/base/json_object.h"
#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/openai/openai_answer.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/jobs/chunk_feed.h"
#include "jobq/transitions.h"

namespace jobq {
namespace {

/// Longest time of a call; the clients give up after as long.
constexpr Millis kLongest{600'000};

constexpr const char* kGoesOn = "the job goes on";

constexpr std::size_t kPageBytes = 1UL << 20;

void cancelJob(const QueueDeps& deps, const JobKey& key) noexcept {
  try {
    const CancelResult result = deps.jobs.cancel(key);
    const auto* cancelled = std::get_if<Cancelled>(&result);
    if (cancelled != nullptr && cancelled->lease.attempt > 0) deps.runs.stopRun(cancelled->lease);
  } catch (...) {
    // The storage fails: the job goes on to the end or to the execution timeout.
  }
}

/// A repeated call would submit the purged job again.
ApiResponse goneJob(const JobKey& key) {
  return {500,
          openAiError(500, "the job " + key.id + " was purged, or has outlived its policy.ttl"),
          {{"x-should-retry", "false"}}};
}

/// The storage fails while the job runs. A repeated call without an Idempotency-Key would run the job a second time.
ApiResponse lostJob(const JobKey& key, JobAfterCall after, const StorageError& error) {
  ApiResponse response{
      503, openAiError(503, "the state of the job " + key.id + " cannot be read now: " + std::string(error.what()))};
  if (after == JobAfterCall::isCancelled) response.headers.emplace_back("x-should-retry", "false");
  return response;
}

/// A call after the submission, with a place among the waiting calls.
struct SubmittedCall {
  WaitSlot slot;
  JobKey key;
  JobAfterCall after;
};

/// A call of /openai after the submission. If the client leaves or the call takes too long, the job is cancelled,
/// unless a call with the same Idempotency-Key may ask for the job.
class AwaitedOpenAi : public PendingCall {
 public:
  AwaitedOpenAi(const QueueDeps& deps, SubmittedCall call) : deps_(deps), call_(std::move(call)) {}
  ~AwaitedOpenAi() override {
    if (!hasEnded_ && after() == JobAfterCall::isCancelled) cancelJob(deps_, key());
  }

  std::optional<ApiResponse> poll(ApiRequest& request) final {
    try {
      return pollJob(request);
    } catch (const StorageError& error) {
      return lostJob(key(), after(), error);
    }
  }

 protected:
  virtual std::optional<ApiResponse> pollJob(ApiRequest& request) = 0;

  const QueueDeps& deps() const noexcept { return deps_; }
  const JobKey& key() const noexcept { return call_.key; }
  JobAfterCall after() const noexcept { return call_.after; }
  Millis wait() const noexcept { return call_.slot.wait; }
  /// Notes the end of the job, so that the job is not cancelled.
  void noteEnd() noexcept { hasEnded_ = true; }

  /// Returns the answer for a job that is unfinished at the end of the wait.
  ApiResponse unfinished(const ApiRequest& request) const {
    if (request.client->hasLeft()) return halfClosedOpenAiAnswer(after());
    if (deps_.draining) return unavailable(request.path, "the server is shutting down: try again in a moment");
    return lateOpenAiAnswer(after());
  }
  static ApiResponse noRoom(const ApiRequest& request) {
    ApiResponse response = noAnswerMemory(request.path, "the answer of the job");
    response.headers.emplace_back("x-should-retry", "false");
    return response;
  }
  ApiResponse failed(const std::optional<Job>& job) const { return job ? failedOpenAiAnswer(*job) : goneJob(key()); }

 private:
  const QueueDeps& deps_;
  const SubmittedCall call_;
  bool hasEnded_ = false;
};

/// A call that is answered with the whole result.
class WholeOpenAi final : public AwaitedOpenAi {
 public:
  WholeOpenAi(const QueueDeps& deps, SubmittedCall call, std::unique_ptr<JobWait> wait)
      : AwaitedOpenAi(deps, std::move(call)), wait_(std::move(wait)) {}

 private:
  std::optional<ApiResponse> pollJob(ApiRequest& request) override {
    const auto result = wait_->poll(waitingCaller(request));
    if (!result) return std::nullopt;
    const std::optional<Job>& job = result->job;
    if (job && !terminal(job->state)) return unfinished(request);
    noteEnd();
    if (!job || job->state != JobState::completed) return failed(job);
    if (!result->hasRoom) return noRoom(request);
    // The texts are joined and unwrapped, each time with a copy: three in all, where draw() counts two for each byte.
    const auto draw = [&](std::size_t more) { return request.room.draw((job->output.size() + more) * 3 / 2); };
    std::vector<std::string> outputs;
    std::uint64_t next = 0;
    std::size_t bytes = 0;
    for (bool hasMore = true; hasMore;) {
      if (!draw(bytes + kPageBytes)) return awaitRoom(request);
      const auto page = deps().jobs.chunks({key(), next, kPageBytes});
      if (!page) break;
      for (const Chunk& chunk : page->chunks) {
        bytes += chunk.output.size();
        if (auto output = joiner_.add(chunk)) outputs.push_back(*std::move(output));
      }
      if (bytes > kMaxOpenAiBytes) return tooLarge();
      next = page->next;
      hasMore = page->more;
    }
    ApiResponse response = wholeOpenAiAnswer(outputs, job->output);
    request.room.noteText(response.body.size());
    return response;
  }

  // The next poll reads the chunks again.
  std::optional<ApiResponse> awaitRoom(ApiRequest& request) {
    request.room.noteText(0);
    joiner_ = {};
    if (deps().draining || request.client->hasLeft() || !wait_->mayAwaitRoom()) return noRoom(request);
    return pollJob(request);
  }

  ApiResponse tooLarge() const {
    return {500,
            openAiError(500, "the job " + key().id + " has over 20 MB of chunks: ask for a stream"),
            {{"x-should-retry", "false"}}};
  }

  OutputJoiner joiner_;
  const std::unique_ptr<JobWait> wait_;
};

/// A call that is answered with an event stream. The head of the answer waits for the first chunk, so that an early
/// error sets the status, but not longer than the longest silence of a stream.
class StreamedOpenAi final : public AwaitedOpenAi {
 public:
  StreamedOpenAi(const QueueDeps& deps, SubmittedCall call)
      : AwaitedOpenAi(deps, std::move(call)),
        feed_(deps.jobs.followChunks(key())),
        end_(now() + wait()),
        quietUntil_(silenceEnd()) {}

  std::optional<BodyPart> nextPart(ApiRequest& request) override {
    try {
      auto part = pollPart(request);
      if (part) {
        request.room.noteText(part->bytes.size());
        // A chunk may end no event, and the stream stays silent.
        if (!part->bytes.empty() || now() >= quietUntil_) quietUntil_ = silenceEnd();
      }
      return part;
    } catch (const StorageError&) {
      return BodyPart{events_.error("the storage of the server failed while the job ran"), true};
    }
  }

 private:
  std::optional<ApiResponse> pollJob(ApiRequest& request) override {
    const auto result = feed_->poll(quietUntil_, waitingCaller(request), kPageBytes);
    if (!result) return std::nullopt;
    if (result->isOver && isSilence(request)) return opened(request, events_.comment(kGoesOn));
    if (result->isOver) return unfinished(request);
    if (!result->page || result->page->chunks.empty()) return endedWithoutChunks(request);
    const std::vector<std::string> outputs = outputsOf(request, result->page->chunks);
    if (!outputs.empty()) {
      if (auto error = openAiErrorIn(outputs.front())) return error;
    }
    return opened(request, addEvents(outputs));
  }

  ApiResponse endedWithoutChunks(ApiRequest& request) {
    noteEnd();
    const auto [job, hasRoom] = deps().jobs.find(key(), &request.room);
    if (!job || job->state != JobState::completed) return failed(job);
    if (!hasRoom) return noRoom(request);
    if (auto error = openAiErrorIn(job->output)) return *std::move(error);
    // The last part follows at once: nextPart() finds the end of the job.
    hasOutput_ = true;
    return opened(request, events_.add(job->output));
  }

  /// Returns the last part of a stream that was opened before the end of the job.
  BodyPart endOfCompleted(ApiRequest& request) {
    if (hasOutput_) return {events_.end(), true};
    const auto [job, hasRoom] = deps().jobs.find(key(), &request.room);
    if (!job) return {events_.error("the job was purged, or has outlived its policy.ttl"), true};
    if (!hasRoom) {
      return {events_.error("the job has a large answer, and too many large ones are being read now"), true};
    }
    if (const auto error = openAiErrorIn(job->output)) return {events_.errorObject(error->body), true};
    std::string events = events_.add(job->output);
    return {std::move(events) + events_.end(), true};
  }

  ApiResponse opened(ApiRequest& request, std::string events) {
    request.room.noteText(events.size());
    quietUntil_ = silenceEnd();
    ApiResponse response{200, std::move(events)};
    response.headers = {{"Content-Type", "text/event-stream"}};
    response.isOpen = true;
    return response;
  }

  std::optional<BodyPart> pollPart(ApiRequest& request) {
    if (request.client->hasLeft() || hasError_) return BodyPart{{}, true};
    if (now() >= end_) return BodyPart{events_.error(lateOpenAiSentence(after())), true};
    const auto result = feed_->poll(quietUntil_, waitingCaller(request), kPageBytes);
    if (!result) return std::nullopt;
    if (result->isOver) return over(request);
    if (result->hasRestarted) {
      return BodyPart{events_.error("the worker of the job was lost, and its answer begins anew: ask again"), true};
    }
    if (result->page && !result->page->chunks.empty()) {
      return BodyPart{addEvents(outputsOf(request, result->page->chunks)), hasError_};
    }
    noteEnd();
    if (result->page && result->page->state == JobState::completed) return endOfCompleted(request);
    NoOutputRoom none;
    const std::optional<Job> job = deps().jobs.find(key(), &none).job;
    return BodyPart{events_.error(job && !job->error.empty() ? job->error : "the job was stopped"), true};
  }

  Instant now() const { return deps().jobs.completions().now(); }
  Instant silenceEnd() const { return std::min(end_, now() + deps().streamSilence); }

  // A wait that ends early is ended by the client or by the end of the server.
  bool isSilence(const ApiRequest& request) const {
    return !request.client->hasLeft() && quietUntil_ < end_ && now() >= quietUntil_;
  }

  BodyPart over(const ApiRequest& request) {
    if (request.client->hasLeft()) return {{}, true};
    if (now() >= quietUntil_) return {events_.comment(kGoesOn), false};
    return {events_.error("the server is shutting down: ask again"), true};
  }

  std::vector<std::string> outputsOf(ApiRequest& request, const std::vector<Chunk>& chunks) {
    std::vector<std::string> outputs;
    for (const Chunk& chunk : chunks) {
      if (auto output = joiner_.add(chunk)) outputs.push_back(*std::move(output));
    }
    request.room.noteKept(joiner_.size() + events_.heldSize());
    return outputs;
  }

  // An output that reports an error is the last event.
  std::string addEvents(const std::vector<std::string>& outputs) {
    std::string events;
    hasOutput_ = true;
    for (const std::string& output : outputs) {
      const auto error = openAiErrorIn(output);
      events += error ? events_.errorObject(error->body) : events_.add(output);
      hasError_ = error.has_value();
      if (hasError_) break;
    }
    return events;
  }

  OutputJoiner joiner_;
  const std::unique_ptr<ChunkFeed> feed_;
  const Instant end_;
  Instant quietUntil_;  // a comment follows then, and opens a stream without a first event
  OpenAiEvents events_;
  bool hasOutput_ = false;  // the events have an output of the job, or a part of an output
  bool hasError_ = false;   // the last event has been sent, or is under way
};

}  // namespace

RouteResult openAi(const QueueDeps& deps, ApiRequest& request) {
  const std::string route = "/" + request.params.at("route");
  if (!isPlain(route, "/._:-")) {
    return errorResponse(request.path, 404,
                         "there is no route " + clipped(route) + ": use letters, digits and . _ : -");
  }
  const bool hasBody = request.method == "POST";
  auto read = readOpenAiRequest(route, hasBody ? std::optional<std::string_view>(request.body) : std::nullopt);
  if (!read) return errorResponse(request.path, 400, read.failure().message());
  const bool isStream = read->isStream;
  request.body = std::move(read->submission);
  WaitSlot slot(deps, kLongest);
  // With a key the job may be the job of an earlier call, perhaps of /run, and later calls may ask for the job.
  const JobAfterCall after = request.idempotencyKey ? JobAfterCall::goesOn : JobAfterCall::isCancelled;
  if (slot.wait == Millis(0)) {
    return unavailable(
        request.path, limitReached("too many calls wait", deps.waiting.whole(), "server.waiting") + "; try again soon");
  }
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
    JobService::AwaitedSubmission submitted;
    try {
      const auto reads = isStream ? JobService::CallerReads::job : JobService::CallerReads::wait;
      submitted = deps.jobs.submitAwaited(std::move(job), *request.endpoint, idempotency, slot.wait, reads);
    } catch (const OutcomeUnknown& error) {  // the job may be stored without a waiting call
      if (after == JobAfterCall::isCancelled) cancelJob(deps, {endpoint, id});
      return lostJob({endpoint, id}, after, error);
    }
    request.bodyMemory.release();
    if (std::holds_alternative<KeyConflict>(submitted.inserted)) return keyConflict(request);
    if (const auto* first = std::get_if<Duplicate>(&submitted.inserted)) id = first->id;
    wait = std::move(submitted.wait);
  }
  SubmittedCall call{std::move(slot), {endpoint, id}, after};
  if (isStream) return begin(std::make_unique<StreamedOpenAi>(deps, std::move(call)), request);
  return begin(std::make_unique<WholeOpenAi>(deps, std::move(call), std::move(wait)), request);
}

}  // namespace jobq

#include "core/http/api/queue/event_stream.h"

#include <algorithm>
#include <utility>

#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/jobs/job_service.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr Millis kStoragePause{1'000};
constexpr Millis kReadPause{1'000};
/// The readings of all streams fall on multiples of this time, so that a thread continues many streams at once.
constexpr Millis kReadStep = kReadPause / 8;

}  // namespace

bool asksForEvents(const ApiRequest& request) { return request.acceptsEvents && request.method != "HEAD"; }

std::optional<ApiResponse> admitEventStream(const QueueDeps& deps, ApiRequest& request, Budget::Reservation& place) {
  if (!place.grow(deps.waiting, 1)) {
    return unavailable(request.path, limitReached("too many calls wait", deps.waiting.whole(), "server.waiting") +
                                         "; try again in a moment");
  }
  return countWellFormed(request);
}

JobEventStream::JobEventStream(const QueueDeps& deps, Budget::Reservation place, JobKey key)
    : deps_(deps), place_(std::move(place)), key_(std::move(key)) {}

std::optional<ApiResponse> JobEventStream::poll(ApiRequest& request) {
  if (!deps_.jobs.presentState(key_)) return noJob(request);
  quietUntil_ = deps_.jobs.completions().now() + deps_.streamSilence;
  ApiResponse response{200, ""};
  response.headers = {{"Content-Type", "text/event-stream"}};
  response.isOpen = true;
  return response;
}

std::optional<BodyPart> JobEventStream::nextPart(ApiRequest& request) {
  for (;;) {
    try {
      return pollPart(request);
    } catch (const StorageError&) {
      retryAt_ = deps_.jobs.completions().now() + kStoragePause;
    }
  }
}

std::optional<BodyPart> JobEventStream::pollPart(ApiRequest& request) {
  while (events_.empty()) {
    request.room.noteText(0);  // all earlier events have left
    if (hasEnded_ || request.client->hasLeft()) return BodyPart{{}, true};
    const Instant now = deps_.jobs.completions().now();
    const Instant until = std::min(quietUntil_, retryAt_.value_or(quietUntil_));
    if (now >= until) retryAt_.reset();
    if (now >= quietUntil_) {
      events_.addComment("the job goes on");
      noteSilence();
    } else if (!advance(request, until)) {
      return std::nullopt;
    }
  }
  request.room.noteText(events_.size());
  quietUntil_ = deps_.jobs.completions().now() + deps_.streamSilence;
  BodyPart part{events_.removePart(), false};
  part.isLast = hasEnded_ && events_.empty();
  return part;
}

void JobEventStream::noteOver(Instant until) {
  if (deps_.jobs.completions().now() < until) endStream();
}

ChangeEventStream::ChangeEventStream(const QueueDeps& deps, Budget::Reservation place, JobKey key)
    : JobEventStream(deps, std::move(place), std::move(key)),
      waiter_(deps.jobs.completions(), this->key(), CompletionNotifier::Interest::changes) {}

ChangeEventStream::NextReading ChangeEventStream::afterQuietReading(JobState state) const {
  const bool mayChangeUnheard = state == JobState::inProgress && deps().hasOtherNodes;
  return mayChangeUnheard ? NextReading::soon : NextReading::afterChange;
}

bool ChangeEventStream::advance(ApiRequest& request, Instant until) {
  const Instant now = deps().jobs.completions().now();
  if (now >= readAt_) {
    // Also the next reading if the storage fails.
    readAt_ = changesFrom_ = Instant((now + kReadPause).time_since_epoch() / kReadStep * kReadStep);
    switch (readJob(request)) {
      case NextReading::atOnce: readAt_ = Instant{}; break;
      case NextReading::soon: break;
      case NextReading::afterChange: readAt_ = Instant::max();
    }
    return true;
  }
  const Instant end = std::min(until, readAt_);
  switch (waiter_.pollChanges(end, changesFrom_, waitingCaller(request))) {
    case CompletionNotifier::Progress::pending: return false;
    case CompletionNotifier::Progress::event: readAt_ = Instant{}; break;
    case CompletionNotifier::Progress::over: noteOver(end);
  }
  return true;
}

}  // namespace jobq

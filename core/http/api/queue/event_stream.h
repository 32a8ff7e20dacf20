// Calls that are answered with a stream of events about a job (core/decisions/http.md, "Event streams").
#pragma once

#include <optional>

#include "core/http/api/api_request.h"
#include "core/http/api/event_text.h"
#include "core/http/api/routes.h"
#include "core/http/transport/budget.h"
#include "core/jobs/completion_notifier.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// Returns true if the answer is to be a stream of events. A HEAD request has none, because its answer has no end.
bool asksForEvents(const ApiRequest& request);

/// Reserves a place among the waiting calls in `place`, and counts the call towards its rate limit. Returns the 503 if
/// no place is free, or the 429 if the rate is exceeded.
std::optional<ApiResponse> admitEventStream(const QueueDeps& deps, ApiRequest& request, Budget::Reservation& place);

/// A call whose answer is a stream of events, open until the job has ended or is gone, the client has left, or the
/// server shuts down. After QueueDeps::streamSilence without an event a comment follows. A storage that fails is asked
/// again a second later.
class JobEventStream : public PendingCall {
 public:
  /// Returns the head of the answer, or the 404 if the job is absent.
  std::optional<ApiResponse> poll(ApiRequest& request) final;
  std::optional<BodyPart> nextPart(ApiRequest& request) final;

 protected:
  /// `deps` outlives the call. `place` is the place of the call among the waiting calls.
  JobEventStream(const QueueDeps& deps, Budget::Reservation place, JobKey key);

  /// Adds the events that exist already, of about a megabyte. Returns false while there is none: the call is then
  /// resumed when there may be one, or at `until`. Called when all earlier events have left. Throws StorageError.
  virtual bool advance(ApiRequest& request, Instant until) = 0;
  /// Called with each comment.
  virtual void noteSilence() noexcept {}

  const QueueDeps& deps() const noexcept { return deps_; }
  const JobKey& key() const noexcept { return key_; }
  EventText& events() noexcept { return events_; }
  /// Ends the answer behind the events added so far.
  void endStream() noexcept { hasEnded_ = true; }
  /// Ends the answer if a wait was over before `until`: the server shuts down, or the client has left.
  void noteOver(Instant until);

 private:
  std::optional<BodyPart> pollPart(ApiRequest& request);

  const QueueDeps& deps_;
  const Budget::Reservation place_;
  const JobKey key_;
  EventText events_;
  Instant quietUntil_{};            // a comment follows then, unless an event comes before
  std::optional<Instant> retryAt_;  // the next reading of a storage that has failed
  bool hasEnded_ = false;
};

/// A stream of events about progress, claims or log lines. Reads the job at once when it has ended, and after another
/// change once a second at most. Rare changes are not announced, so each comment brings a reading too. With
/// QueueDeps::hasOtherNodes a running job is read once a second.
class ChangeEventStream : public JobEventStream {
 protected:
  ChangeEventStream(const QueueDeps& deps, Budget::Reservation place, JobKey key);

  enum class NextReading {
    atOnce,
    soon,        ///< within a second
    afterChange  ///< after the next change or comment
  };
  /// Reads the job, and adds the events about the changes since the last reading. Throws StorageError.
  virtual NextReading readJob(ApiRequest& request) = 0;
  /// Returns the next reading of a job without news: a run on another node announces no progress here.
  NextReading afterQuietReading(JobState state) const;

 private:
  bool advance(ApiRequest& request, Instant until) final;
  void noteSilence() noexcept final { readAt_ = Instant{}; }

  CompletionNotifier::Waiter waiter_;
  Instant readAt_{};       // the next reading, whatever happens
  Instant changesFrom_{};  // the earliest reading after a change
};

}  // namespace jobq

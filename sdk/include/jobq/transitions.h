// The state machine of a job as a table. Every storage and the model of the property tests are checked against this
// table (core/http/API.md, "States and transitions"; core/decisions/jobs.md).
#pragma once

#include <array>
#include <optional>

#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// Causes of a change of state.
enum class Trigger {
  claim,     ///< a worker claims the job
  complete,  ///< the handler returned
  fail,      ///< the handler failed
  timeOut,   ///< policy.executionTimeout elapsed while running
  cancel,    ///< /cancel
  retry,     ///< /retry, before the result has expired
  lose,      ///< the worker was lost, and losses < maxAttempts
  loseLast,  ///< the worker was lost, and losses == maxAttempts
  release,   ///< returned to the queue unharmed (drain)
};

/// A permitted change of state.
struct Transition {
  JobState from;
  Trigger trigger;
  JobState to;
};

/// All permitted changes. Removal (purge of a queued job, expiry of any job) is not a state: a removed job is absent.
inline constexpr std::array kTransitions{
    Transition{JobState::inQueue, Trigger::claim, JobState::inProgress},
    Transition{JobState::inQueue, Trigger::cancel, JobState::cancelled},
    Transition{JobState::inProgress, Trigger::complete, JobState::completed},
    Transition{JobState::inProgress, Trigger::fail, JobState::failed},
    Transition{JobState::inProgress, Trigger::timeOut, JobState::timedOut},
    Transition{JobState::inProgress, Trigger::cancel, JobState::cancelled},
    Transition{JobState::inProgress, Trigger::lose, JobState::inQueue},
    Transition{JobState::inProgress, Trigger::loseLast, JobState::failed},
    Transition{JobState::inProgress, Trigger::release, JobState::inQueue},
    Transition{JobState::failed, Trigger::retry, JobState::inQueue},
    Transition{JobState::timedOut, Trigger::retry, JobState::inQueue},
};

/// Returns the state after `trigger`, or an empty optional if `trigger` is not permitted in the state `from`.
constexpr std::optional<JobState> next(JobState from, Trigger trigger) noexcept {
  for (const Transition& t : kTransitions) {
    if (t.from == from && t.trigger == trigger) return t.to;
  }
  return std::nullopt;
}

/// Returns the expiry of a job that ends at `now` as `to`, unless setTtl() has set one. `endOfTtl` is the expiry before
/// the end. A failure with a retention of failures outlives the ttl.
constexpr Instant expiryAfterEnd(JobState to, Instant now, Instant endOfTtl, Millis retention,
                                 std::optional<Millis> retentionFailed) noexcept {
  if (retentionFailed && (to == JobState::failed || to == JobState::timedOut)) return now + *retentionFailed;
  return endOfTtl < now + retention ? endOfTtl : now + retention;
}

/// Returns the expiry of a job that a retry queues again at `now`, unless setTtl() has set one. With a retention of
/// failures a new ttl begins.
constexpr Instant expiryAfterRetry(Instant submittedAt, Instant now, Millis ttl,
                                   std::optional<Millis> retentionFailed) noexcept {
  return (retentionFailed ? now : submittedAt) + ttl;
}

/// Returns true if the job has ended. At the end of a job, waiting callers are answered and a webhook is owed.
constexpr bool terminal(JobState state) noexcept { return state != JobState::inQueue && state != JobState::inProgress; }

}  // namespace jobq

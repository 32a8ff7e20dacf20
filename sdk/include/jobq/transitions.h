// The state machine of a job: the one statement of what may follow what. Every backend and the model test are checked
// against this table (api.md "States and transitions", core/decisions/jobs.md).
#pragma once

#include <array>
#include <optional>

#include "jobq/job.h"

namespace jobq {

enum class Trigger {
  claim,     ///< a worker takes it
  complete,  ///< the handler returned
  fail,      ///< the handler failed
  timeOut,   ///< policy.executionTimeout elapsed while running
  cancel,    ///< /cancel
  retry,     ///< /retry, results not expired
  lose,      ///< its worker was lost, losses < maxAttempts
  loseLast,  ///< its worker was lost, losses == maxAttempts
  release,   ///< handed back unharmed (drain)
};

struct Transition {
  JobState from;
  Trigger trigger;
  JobState to;
};

/// Being removed (purge of a queued job, expiry of any job) is not a state: the job is then absent.
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

/// The state that follows, or nothing when `trigger` is not allowed in `from`.
constexpr std::optional<JobState> next(JobState from, Trigger trigger) noexcept {
  for (const Transition& t : kTransitions) {
    if (t.from == from && t.trigger == trigger) return t.to;
  }
  return std::nullopt;
}

/// Terminal: the job has ended; a waiter is answered and a webhook is owed.
constexpr bool terminal(JobState state) noexcept { return state != JobState::inQueue && state != JobState::inProgress; }

}  // namespace jobq

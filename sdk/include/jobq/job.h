// What a job is: the words every room and every plugin shares. Values only; the strings `input`, `output`, `progress`
// and chunks are the caller's own JSON text and are carried byte for byte, never re-written (design, sentence 5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "jobq/time.h"

namespace jobq {

using JobId = std::string;       ///< `<uuid>-u1`, from /runsync `sync-<uuid>-u1`; matches [A-Za-z0-9_-]+.
using EndpointId = std::string;  ///< matches [A-Za-z0-9_-]+.
using WorkerId = std::string;    ///< one slot: a handler instance, a child process or a remote process.

/// The states of the API text, in its order. The numbers are stored by backends and never change.
enum class JobState : std::uint8_t {
  inQueue = 0,
  inProgress = 1,
  completed = 2,
  failed = 3,
  cancelled = 4,
  timedOut = 5
};

/// The name on the wire: "IN_QUEUE", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT".
constexpr std::string_view nameOf(JobState state) noexcept {
  switch (state) {
    case JobState::inQueue: return "IN_QUEUE";
    case JobState::inProgress: return "IN_PROGRESS";
    case JobState::completed: return "COMPLETED";
    case JobState::failed: return "FAILED";
    case JobState::cancelled: return "CANCELLED";
    case JobState::timedOut: return "TIMED_OUT";
  }
  return "";
}

/// A job as everyone but its owner has to name it: a job of another endpoint is absent.
struct JobKey {
  EndpointId endpoint;
  JobId id;
  bool operator==(const JobKey&) const = default;
};

/// The request's `policy` with every default filled in (api.md, "policy object").
struct JobPolicy {
  Millis executionTimeout{600'000};  ///< counted from the claim, not in the queue
  Millis ttl{86'400'000};            ///< counted from the submission; the job is gone afterwards, even while running
  bool lowPriority = false;          ///< runs when no normal job waits; never counted for scaling
  std::int32_t priority = 0;         ///< ours: -1000..1000, higher first, read by queue_priority alone
};

/// What was submitted, complete and immutable.
struct JobSpec {
  JobId id;
  EndpointId endpoint;
  std::string apiKeyId;  ///< id of the API key that submitted it; queue_fair shares by it
  std::string input;     ///< JSON object text
  std::string webhook;   ///< URL, empty for none
  std::string s3Config;  ///< sealed by the host (encrypted at rest); storages treat it as bytes; empty for none
  JobPolicy policy;
  Millis retention{1'800'000};    ///< how long a result stays after completion
  std::uint32_t maxAttempts = 3;  ///< losses after which a job is FAILED instead of going back in line
};

/// A job as a question about it finds it. Never holds input, webhook or s3Config.
struct Job {
  JobId id;
  EndpointId endpoint;
  JobState state = JobState::inQueue;
  std::uint32_t attempt = 0;  ///< the fencing token: grows with every claim, retry, loss and release; never goes back
  std::uint32_t losses = 0;   ///< workers lost under it since the submission or the last retry
  std::uint32_t retries = 0;  ///< losses and /retry calls over its whole life
  bool lowPriority = false;
  Instant submittedAt{};
  Instant queuedAt{};                 ///< its place in line; kept through a loss, new after a retry
  std::optional<Instant> startedAt;   ///< claim of the current or last attempt
  std::optional<Instant> finishedAt;  ///< set exactly when the state is terminal
  Instant expiresAt{};                ///< absent from here on
  WorkerId workerId;                  ///< empty until first taken
  std::string output;                 ///< JSON text; empty for none
  std::string progress;               ///< JSON text of the last progress report of this attempt; empty for none
  std::string error;                  ///< the message of a FAILED or TIMED_OUT job
};

/// The right to report about a job: valid while the job is IN_PROGRESS under exactly this attempt.
struct LeaseRef {
  JobId job;
  std::uint32_t attempt = 0;
  bool operator==(const LeaseRef&) const = default;
};

/// How a handler's run ended.
struct Completed {
  std::string output;  ///< JSON text
};
struct Failed {
  std::string error;
  std::string output;  ///< JSON text kept beside the error; empty for none
};
using Outcome = std::variant<Completed, Failed>;

}  // namespace jobq

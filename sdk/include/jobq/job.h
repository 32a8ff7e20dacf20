// The values that describe a job, shared by the server and all plugins. The strings `input`, `output`, `progress` and
// chunks are the caller's own JSON text. Every part of jobq carries these strings byte for byte and never rewrites
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "jobq/time.h"

namespace jobq {

using JobId = std::string;       ///< `<uuid>-u1`, from /runsync `sync-<uuid>-u1`; matches [A-Za-z0-9_-]+
using EndpointId = std::string;  ///< matches [A-Za-z0-9_-]+
using WorkerId = std::string;    ///< a worker: a handler instance, or a place of a remote process

/// The states of a job, in the order of core/http/API.md, "States and transitions". Storages store the numbers, which
/// never change.
enum class JobState : std::uint8_t {
  inQueue = 0,
  inProgress = 1,
  completed = 2,
  failed = 3,
  cancelled = 4,
  timedOut = 5
};

/// Returns the name of a state in the API: "IN_QUEUE", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT".
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

/// The name of a job for callers of the API: a job of another endpoint is absent.
struct JobKey {
  EndpointId endpoint;
  JobId id;
  bool operator==(const JobKey&) const = default;
};

/// The `policy` of a submission with every default filled in (core/http/API.md, "Policy").
struct JobPolicy {
  Millis executionTimeout{600'000};  ///< counted from the claim, without the time in the queue
  Millis ttl{86'400'000};            ///< counted from the submission; afterwards the job is absent, even while running
  bool lowPriority = false;          ///< runs when no normal job waits; never counts for scaling
  std::int32_t priority = 0;         ///< -1000..1000, higher first; read only by the plugin queue_priority
};

/// Planned: automatic retries of a job that has failed.
struct RetryPolicy {
  std::uint32_t most = 0;      ///< number of retries
  Millis initial{1'000};       ///< pause before the first retry; each further pause is twice as long
  Millis maxDelay{3'600'000};  ///< longest pause
  bool afterTimeout = false;   ///< a TIMED_OUT job is retried too
};

/// A submission: complete and immutable.
struct JobSpec {
  JobId id;
  EndpointId endpoint;
  std::string apiKeyId;  ///< id of the API key of the submission; queue_fair shares by this id
  std::string input;     ///< JSON object text
  std::string webhook;   ///< URL, empty for none
  std::string s3Config;  ///< sealed by the host (encrypted at rest); bytes to storages; empty for none
  JobPolicy policy;
  Millis retention{1'800'000};    ///< time for which a result stays after the end of the job
  std::uint32_t maxAttempts = 3;  ///< number of losses at which a job is FAILED instead of queued again
  /// Time for which a FAILED or TIMED_OUT job stays after its end, also beyond its ttl; a retry then begins a new ttl.
  /// Empty for `retention`.
  std::optional<Millis> retentionFailed;

  // Planned: every storage refuses a job with one of these values (planned.h).
  Millis delay{0};                   ///< time after the submission in which no claim takes the job
  std::optional<RetryPolicy> retry;  ///< automatic retries; empty for none
  std::string traceparent;           ///< W3C trace context of the submission; empty for none
};

/// A job as a query returns the job, without webhook and s3Config.
struct Job {
  JobId id;
  EndpointId endpoint;
  std::string apiKeyId;  ///< id of the API key of the submission
  JobState state = JobState::inQueue;
  std::uint32_t attempt = 0;  ///< fencing token: grows with every claim, retry, loss and release
  std::uint32_t losses = 0;   ///< workers lost during a run since the submission or the last retry
  std::uint32_t retries = 0;  ///< losses and /retry calls since the submission
  bool lowPriority = false;
  Instant submittedAt{};
  Instant queuedAt{};                 ///< begin of the time in the queue; kept through a loss, new after a retry
  std::optional<Instant> startedAt;   ///< moment of the claim of the current or last attempt
  std::optional<Instant> finishedAt;  ///< set exactly if the state is terminal
  Instant expiresAt{};                ///< the job is absent from this moment on
  WorkerId workerId;                  ///< worker of the current or last attempt; empty before the first claim
  std::string output;                 ///< JSON text; empty for none
  std::string progress;               ///< JSON text of the last progress report of this attempt; empty for none
  std::string error;                  ///< message of a FAILED or TIMED_OUT job
  std::string input;                  ///< JSON text; only from JobStore::find() with JobExtent::input
  std::uint64_t bodyBytes = 0;        ///< set by JobStore::find(): size of the asked bodies, also if left out

  /// Returns false if JobStore::find() has left out the bodies.
  bool isWhole() const noexcept { return output.size() + progress.size() + input.size() >= bodyBytes; }
};

/// The right to report about a job, valid while the job is IN_PROGRESS under exactly this attempt.
struct LeaseRef {
  JobId job;
  std::uint32_t attempt = 0;
  bool operator==(const LeaseRef&) const = default;
};

/// End of a run with an output.
struct Completed {
  std::string output;  ///< JSON text
};
/// End of a run with an error.
struct Failed {
  std::string error;
  std::string output;  ///< JSON text kept beside the error; empty for none
};
/// The end of a handler's run.
using Outcome = std::variant<Completed, Failed>;

}  // namespace jobq

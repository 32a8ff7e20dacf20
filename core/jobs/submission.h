// Room 4 (reception): a request's body becomes a well-formed job, or a 400 that names the field and the remedy.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/bounded_integer.h"
#include "core/endpoints/endpoint.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

class SecretBox;

/// One sentence for the caller, and the status that goes with it.
struct Refusal {
  std::string message;
  int status = 400;
  Millis retryAfter{0};  ///< of 429
};

/// What reception has to know of the server.
struct SubmissionRules {
  const SecretBox& secrets;
  bool allowPrivateAddresses = false;                     ///< `net.allowPrivate`
  std::set<std::string> webhookSchemes{"http", "https"};  ///< lower case: what the installed transports serve
  OutOfRange numbers = OutOfRange::refuse;                ///< of `policy`
};

inline constexpr Millis kWaitMin{1'000};
inline constexpr Millis kWaitMax{300'000};
inline constexpr Millis kWaitDefault{90'000};

/// Reads a job request (api.md, "Job request body"). `syncWait` is set for /runsync: it decides the id's prefix and the
/// retention. s3Config leaves sealed. The input is the caller's own bytes, and a large one still lies where the body
/// lay.
std::variant<JobSpec, Refusal> readSubmission(std::string body, const Endpoint& endpoint, const std::string& apiKeyId,
                                              std::optional<Millis> syncWait, const SubmissionRules& rules);

/// What is wrong with a policy, in one sentence; nothing when a caller might have sent it.
std::optional<std::string> policyFault(const JobPolicy& policy);

/// How long a result stays (core/decisions/jobs.md): /run 30 minutes; /runsync 60 s, with a wait over 90 s min(wait,
/// 300 s). An endpoint may have times of its own for the first two.
Millis retentionFor(std::optional<Millis> syncWait, const Endpoint& endpoint);

}  // namespace jobq

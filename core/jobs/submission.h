// The stage validation: a request's body becomes a well-formed job, or a 400 that names the field and the remedy.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bounded_integer.h"
#include "core/base/result.h"
#include "core/endpoints/endpoint.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

class SecretBox;

/// A well-formed job.
struct ReadSubmission {
  JobSpec job;
  std::vector<std::string> ignoredKeys;  ///< unknown keys at the top of the body, decoded
};

/// Settings and parts of the server that validation needs.
struct SubmissionRules {
  const SecretBox& secrets;
  bool allowPrivateAddresses = false;                     ///< the setting `net.allowPrivate`
  std::set<std::string> webhookSchemes{"http", "https"};  ///< lower case; the schemes of the installed transports
  OutOfRange numbers = OutOfRange::refuse;                ///< treatment of numbers in `policy` out of range
  bool ignoresNearKeys = false;                           ///< false: an unknown key near a known one is 400
};

inline constexpr Millis kWaitMin{1'000};
inline constexpr Millis kWaitMax{300'000};
inline constexpr Millis kWaitDefault{90'000};

/// Reads a job request (core/http/API.md, "Job request body"). `syncWait`, in milliseconds, is present for /runsync and
/// decides the prefix of the id and the retention. The s3Config is sealed. The input keeps the caller's bytes; a large
/// input is not copied. Returns the job, or one sentence with the field and the remedy. Any thread.
Result<ReadSubmission> readSubmission(std::string body, const Endpoint& endpoint, const std::string& apiKeyId,
                                      std::optional<Millis> syncWait, const SubmissionRules& rules);

/// Returns how long a result stays (core/decisions/jobs.md): for /run and /runsync the time of the endpoint, else of
/// the server; for /runsync with a wait over 90 s the longer of the wait, at most 300 s, and the endpoint's own time.
Millis retentionFor(std::optional<Millis> syncWait, const Endpoint& endpoint);
/// Returns the retention of failures of the endpoint; 0: failures stay as long as other results.
Millis retentionOfFailures(const Endpoint& endpoint);

}  // namespace jobq

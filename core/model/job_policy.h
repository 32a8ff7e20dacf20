// The bounds on the policy of a job, for callers and filters alike (core/http/API.md, "Job request body").
#pragma once

#include <string>

#include "core/base/bounded_integer.h"
#include "core/base/result.h"
#include "jobq/job.h"

namespace jobq {

/// The range of one number of a policy, with the words for a refusal.
struct PolicyBounds {
  const char* field;
  Range range;
  const char* unit;  ///< follows the range in a sentence
};

inline constexpr PolicyBounds kExecutionTimeoutBounds{"policy.executionTimeout", {5'000, 604'800'000}, " milliseconds"};
inline constexpr PolicyBounds kTtlBounds{"policy.ttl", {10'000, 604'800'000}, " milliseconds"};
inline constexpr PolicyBounds kPriorityBounds{"policy.priority", {-1'000, 1'000}, ""};

/// Returns the sentence that refuses a number outside of the range.
std::string rangeOf(const PolicyBounds& bounds);

/// Fails, with one sentence, if no caller might have sent the policy.
Result<void> checkPolicy(const JobPolicy& policy);

}  // namespace jobq

#include "core/model/job_policy.h"

#include <cstdint>
#include <utility>

namespace jobq {

std::string rangeOf(const PolicyBounds& bounds) {
  return std::string(bounds.field) + " must be an integer from " + std::to_string(bounds.range.min) + " to " +
         std::to_string(bounds.range.max) + bounds.unit;
}

Result<void> checkPolicy(const JobPolicy& policy) {
  const std::pair<PolicyBounds, std::int64_t> numbers[] = {{kExecutionTimeoutBounds, policy.executionTimeout.count()},
                                                           {kTtlBounds, policy.ttl.count()},
                                                           {kPriorityBounds, policy.priority}};
  for (const auto& [bounds, number] : numbers) {
    if (number < bounds.range.min || number > bounds.range.max) return invalid(rangeOf(bounds));
  }
  return {};
}

}  // namespace jobq

// Comparison of answers of a storage with all their content.
#pragma once

#include <tuple>

#include "jobq/job.h"
#include "jobq/lease_store.h"

namespace jobq::testkit {

/// Returns whether two claimed jobs are equal in every field.
inline bool isSameClaim(const ClaimedJob& one, const ClaimedJob& other) {
  const auto all = [](const ClaimedJob& job) {
    return std::tie(job.lease, job.endpoint, job.worker, job.input, job.webhook, job.s3Config,
                    job.policy.executionTimeout, job.policy.ttl, job.policy.lowPriority, job.policy.priority,
                    job.submittedAt, job.startedAt, job.deadline);
  };
  return all(one) == all(other);
}

}  // namespace jobq::testkit

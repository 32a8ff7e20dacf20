// Comparison of answers of a storage with all their content.
#pragma once

#include <algorithm>
#include <tuple>

#include "jobq/chunk_store.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"

namespace jobq::testkit {

/// Returns whether two claimed jobs are equal in every field.
inline bool isSameClaim(const ClaimedJob& one, const ClaimedJob& other) {
  const auto all = [](const ClaimedJob& job) {
    return std::tie(job.lease, job.endpoint, job.worker, job.input, job.webhook, job.s3Config,
                    job.policy.executionTimeout, job.policy.ttl, job.policy.lowPriority, job.policy.priority,
                    job.submittedAt, job.startedAt, job.runsFor, job.logLines);
  };
  return all(one) == all(other);
}

/// Returns whether two pages have the same chunks of an attempt.
inline bool isSamePage(const ChunkPage& one, const ChunkPage& other) {
  const auto isSameChunk = [](const Chunk& left, const Chunk& right) {
    return std::tie(left.output, left.metrics, left.partial) == std::tie(right.output, right.metrics, right.partial);
  };
  return std::equal(one.chunks.begin(), one.chunks.end(), other.chunks.begin(), other.chunks.end(), isSameChunk) &&
         one.next == other.next && one.attempt == other.attempt;
}

}  // namespace jobq::testkit

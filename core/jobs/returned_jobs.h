// The return of many jobs to their queues, in calls of bounded length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "jobq/job.h"
#include "jobq/lease_store.h"

namespace jobq {

/// Most jobs of one call of LeaseStore::release() or lose(), as of a sweep: the call may be one write of the storage,
/// and no other write runs meanwhile.
inline constexpr std::size_t kMostReturned = 500;

/// Calls `operation` with at most kMostReturned of the leases at a time, in their order. Behind an exception the caller
/// may repeat the whole call, because the storage skips the leases of earlier parts as stale.
template <class Operation>
void forEachPart(std::span<const LeaseRef> leases, Operation&& operation) {
  while (!leases.empty()) {
    const auto part = leases.first(std::min(leases.size(), kMostReturned));
    leases = leases.subspan(part.size());
    operation(part);
  }
}

/// Releases any number of jobs (LeaseStore::release()). Returns the number of returned jobs.
inline std::size_t releaseAll(LeaseStore& store, std::span<const LeaseRef> leases) {
  std::size_t returned = 0;
  forEachPart(leases, [&](std::span<const LeaseRef> part) { returned += store.release(part); });
  return returned;
}

}  // namespace jobq

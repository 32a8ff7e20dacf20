// The return of many jobs to their queues, in calls of bounded length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "core/base/repeated_call.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"

namespace jobq {

/// Most jobs of one call of LeaseStore::giveBack(), as of a sweep: the call may be one write of the storage,
/// and no other write runs meanwhile.
inline constexpr std::size_t kMostReturned = 500;

/// Returns jobs to their queues by LeaseStore::giveBack(), as losses or unharmed, in calls for at most kMostReturned
/// jobs. `announce(const SweepResult&)` gets the result of each call. Behind an exception the caller may repeat the
/// whole call, because the storage skips the leases of earlier parts as stale.
template <class Announce>
void giveBackAll(LeaseStore& store, std::span<const LeaseRef> leases, bool areLost, Announce&& announce) {
  while (!leases.empty()) {
    std::vector<ReturnedJob> part;
    for (const LeaseRef& lease : leases.first(std::min(leases.size(), kMostReturned))) {
      part.push_back({lease, areLost});
    }
    leases = leases.subspan(part.size());
    announce(store.giveBack(part));
  }
}

/// Returns jobs unharmed to their queues, and repeats a call without an answer. Throws StorageError.
inline void releaseAll(LeaseStore& store, std::span<const LeaseRef> leases) {
  callRepeatedly([&] {
    giveBackAll(store, leases, false, [](const SweepResult&) {});
    return true;
  });
}

}  // namespace jobq

// LeaseStore::giveBack() for jobs that all return in the same way.
#pragma once

#include <cstddef>
#include <vector>

#include "jobq/job.h"
#include "jobq/lease_store.h"

namespace jobq::testkit {

inline SweepResult giveBack(LeaseStore& store, const std::vector<LeaseRef>& leases, bool areLost) {
  std::vector<ReturnedJob> jobs;
  for (const LeaseRef& lease : leases) jobs.push_back({lease, areLost});
  return store.giveBack(jobs);
}

/// Returns jobs unharmed. Returns the number of jobs that the call took back.
inline std::size_t release(LeaseStore& store, const std::vector<LeaseRef>& leases) {
  return giveBack(store, leases, false).stopped.size();
}

/// Returns the jobs of lost workers.
inline SweepResult lose(LeaseStore& store, const std::vector<LeaseRef>& leases) {
  return giveBack(store, leases, true);
}

}  // namespace jobq::testkit

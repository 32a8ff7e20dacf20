// Names in the log the jobs that a dead process was running, because a job may be the reason of the death.
#pragma once

#include <cstddef>
#include <vector>

#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/log.h"

namespace jobq {

/// Used once, before the first claim, in the order collect(), first sweep, report(). One thread.
class LostJobs {
 public:
  /// `jobs` and `log` outlive the object.
  LostJobs(JobStore& jobs, Log& log) : jobs_(jobs), log_(log) {}

  /// Remembers the endpoint's jobs in state IN_PROGRESS, up to 1,000 jobs of all endpoints together; further jobs are
  /// only counted. Throws StorageError.
  void collect(const EndpointId& endpoint);

  /// Writes a line for each remembered job taken from its dead worker by the sweep, with the new state and the number
  /// of lost workers so far. Throws StorageError.
  void report();

 private:
  JobStore& jobs_;
  Log& log_;
  std::vector<JobKey> running_;
  std::size_t unnamed_ = 0;  // jobs beyond the named ones
};

}  // namespace jobq

// Which jobs a process that died took with it: the log of the next start names them, because one of them may be why it
// died.
#pragma once

#include <cstddef>
#include <vector>

#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/log.h"

namespace jobq {

/// Used once, before anything is claimed: collect(), the first sweep, report(). One thread.
class LostJobs {
 public:
  LostJobs(JobStore& jobs, Log& log) : jobs_(jobs), log_(log) {}

  /// Remembers the jobs of the endpoint that the storage still has as running. Throws StorageError.
  void collect(const EndpointId& endpoint);

  /// Writes a line for each of them that the sweep took from its dead worker: what became of it, and how often its
  /// worker was lost. Throws StorageError.
  void report();

 private:
  JobStore& jobs_;
  Log& log_;
  std::vector<JobKey> running_;
  std::size_t unnamed_ = 0;  // beyond those that are named
};

}  // namespace jobq

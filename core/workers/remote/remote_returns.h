// The jobs that remote workers have lost or must give back, until the storage has returned the jobs to the queues.
#pragma once

#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/log.h"
#include "jobq/mutex.h"

namespace jobq {

class RunReports;

/// Any thread.
class RemoteReturns {
 public:
  /// `reports` and `log` outlive the object.
  RemoteReturns(RunReports& reports, Log& log) : reports_(reports), log_(log) {}

  /// Adds jobs whose worker was lost, and jobs that go back unharmed.
  void add(const std::vector<LeaseRef>& lost, const std::vector<LeaseRef>& unharmed);

  /// Returns the jobs to the queues. A failure of the storage is logged, and the job stays for the next call.
  void store() noexcept;

 private:
  RunReports& reports_;
  Log& log_;
  Mutex mutex_;
  std::vector<LeaseRef> lost_ JOBQ_GUARDED_BY(mutex_);
  std::vector<LeaseRef> unharmed_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq

// Removes the jobs of deleted endpoints, and then the rest of the endpoints.
#pragma once

#include <vector>

#include "jobq/job.h"
#include "jobq/job_store.h"

namespace jobq {

/// The deleted endpoints of which the storage still holds jobs or records. All functions belong to one thread.
class LeavingEndpoints {
 public:
  virtual ~LeavingEndpoints() = default;

  /// Returns the deleted endpoints that still exist in the storage.
  virtual std::vector<EndpointId> leaving() const = 0;

  /// Returns true if a call on this node may still insert a job.
  virtual bool isInUse(const EndpointId& endpoint) const = 0;

  /// Removes the rest of an endpoint without jobs. Throws StorageError; a later call continues.
  virtual void forget(const EndpointId& endpoint) = 0;
};

/// The running jobs and the waiting callers of an endpoint on this node. All functions belong to one thread.
class EndpointActivity {
 public:
  virtual ~EndpointActivity() = default;

  /// Returns true if the endpoint has no worker on this node except leaving and stuck ones.
  virtual bool hasNoActiveWorkers(const EndpointId& endpoint) const = 0;

  /// Wakes the callers that wait for jobs of the endpoint, because jobs were removed.
  virtual void announceRemoved(const EndpointId& endpoint) = 0;
};

/// One thread. Every node may run a remover, also at the same time: each call of the storage is atomic, and an
/// interrupted step continues later.
class EndpointRemover {
 public:
  /// The referenced objects outlive the remover.
  EndpointRemover(JobStore& jobs, LeavingEndpoints& endpoints, EndpointActivity& activity)
      : jobs_(jobs), endpoints_(endpoints), activity_(activity) {}

  /// Removes at most 10,000 jobs of each endpoint; the next step continues. Throws StorageError.
  void step();

 private:
  void removeFrom(const EndpointId& endpoint);

  JobStore& jobs_;
  LeavingEndpoints& endpoints_;
  EndpointActivity& activity_;
};

}  // namespace jobq

// Removes the jobs of deleted endpoints, and then the rest of the endpoints.
#pragma once

#include <map>
#include <vector>

#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/time.h"

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

/// The running jobs of an endpoint on all nodes, and its waiting callers on this node. All functions belong to one
/// thread.
class EndpointActivity {
 public:
  virtual ~EndpointActivity() = default;

  /// Returns true if each worker of the endpoint, on all nodes, leaves or is stuck. Throws StorageError.
  virtual bool hasNoActiveWorkers(const EndpointId& endpoint) const = 0;

  /// Wakes the callers that wait for jobs of the endpoint, because jobs were removed.
  virtual void announceRemoved(const EndpointId& endpoint) = 0;
};

/// One thread. Every node may run a remover, also at the same time: each call of the storage is atomic, and an
/// interrupted step continues later.
class EndpointRemover {
 public:
  /// Everything here outlives the remover.
  struct Deps {
    JobStore& jobs;
    LeavingEndpoints& endpoints;
    EndpointActivity& activity;
    Clock& clock;
  };
  /// An endpoint is removed `settle` milliseconds after this node has first seen it deleted: another node that does not
  /// know yet may still insert jobs. 0 on a storage for a single process.
  EndpointRemover(const Deps& deps, Millis settle) : deps_(deps), settle_(settle) {}

  /// Removes at most 10,000 jobs of each endpoint; the next step continues. Throws StorageError.
  void step();

 private:
  void removeFrom(const EndpointId& endpoint);

  const Deps deps_;
  const Millis settle_;
  std::map<EndpointId, Instant> seen_;  // when this node first saw each deleted endpoint
};

}  // namespace jobq

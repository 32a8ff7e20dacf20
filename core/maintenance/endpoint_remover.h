// Removes the jobs of deleted endpoints, and then the rest of the endpoints.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/job_store.h"

namespace jobq {

/// One thread. Every node may run a remover, also at the same time: each call of the storage is atomic, and an
/// interrupted step continues later.
class EndpointRemover {
 public:
  /// Everything here outlives the remover.
  struct Deps {
    JobStore& jobs;
    std::function<std::vector<EndpointId>()> leaving;        ///< deleted endpoints that still exist in the storage
    std::function<bool(const EndpointId&)> hasLeft;          ///< says if all jobs of the endpoint have left this node
    std::function<bool(const EndpointId&)> isInUse;          ///< says if a call here may still insert a job
    std::function<void(const EndpointId&)> announceRemoved;  ///< wakes callers waiting for removed jobs
    std::function<void(const EndpointId&)> forget;           ///< removes the rest of the endpoint
  };
  explicit EndpointRemover(Deps deps) : deps_(std::move(deps)) {}

  /// Removes at most 10,000 jobs of each endpoint; the next step continues. Throws StorageError.
  void step();

 private:
  void removeFrom(const EndpointId& endpoint);

  const Deps deps_;
};

}  // namespace jobq

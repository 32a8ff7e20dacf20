// Removes the jobs of endpoints that were deleted, and then what is left of the endpoints themselves.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/job_store.h"

namespace jobq {

/// One thread. Any node may do it, several at once too: each step is whole, and one that is cut off goes on later.
class EndpointRemover {
 public:
  struct Deps {
    JobStore& jobs;
    std::function<std::vector<EndpointId>()> leaving;        ///< that are deleted, and not removed yet
    std::function<bool(const EndpointId&)> hasLeft;          ///< none of its jobs runs here any more
    std::function<bool(const EndpointId&)> isInHand;         ///< a call here may yet bring it a job
    std::function<void(const EndpointId&)> announceRemoved;  ///< its jobs are gone: who waits has to be told
    std::function<void(const EndpointId&)> forget;           ///< nothing of it is left
  };
  explicit EndpointRemover(Deps deps) : deps_(std::move(deps)) {}

  /// A bounded piece of work; the rest is the next step's. StorageError passes through.
  void step();

 private:
  void removeFrom(const EndpointId& endpoint);

  const Deps deps_;
};

}  // namespace jobq

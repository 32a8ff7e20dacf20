// The remote workers that a node knows, and the bound on the number: ids are free text, so a client can make up any
// number of workers. Has no lock, as RemoteTable.
#pragma once

#include <cstddef>
#include <map>

#include "core/workers/remote/remote_worker.h"
#include "jobq/job.h"

namespace jobq {

/// Not thread-safe.
class RemoteRoster {
 public:
  using Workers = std::map<RemoteWorkerKey, RemoteWorker>;

  /// Returns the worker, or null for an unknown worker.
  RemoteWorker* find(const RemoteWorkerKey& key);
  /// Adds an unknown worker. Returns null if there are 10,000 other workers, or 9,000 and 1,000 of the same endpoint.
  /// If no place is free, the worker replaces a worker that has never had a job and has no connection.
  RemoteWorker* add(const RemoteWorkerKey& key);
  /// Removes each worker for which `isOver` returns true; `isOver` may change the worker.
  template <class Test>
  void removeIf(const Test& isOver) {
    for (auto at = workers_.begin(); at != workers_.end();) at = isOver(at->first, at->second) ? erase(at) : ++at;
  }

  Workers& all() noexcept { return workers_; }
  const Workers& all() const noexcept { return workers_; }
  /// Returns true if the endpoint has had a worker. The endpoints without a worker are forgotten when there are more
  /// than 10,000 endpoints, because endpoints come and go.
  bool hasServed(const EndpointId& endpoint) const { return workersOf_.contains(endpoint); }

 private:
  bool hasPlaceFor(const EndpointId& endpoint) const;
  void removeUnused();
  Workers::iterator erase(Workers::iterator worker);

  Workers workers_;
  // Number of workers of each endpoint that has had a worker.
  std::map<EndpointId, std::size_t> workersOf_;
  RemoteWorkerKey lastLook_;  // where removeUnused() has ended
};

}  // namespace jobq

// Clients of the API in the simulation of nodes. Each call goes to a single node; after a 503 a client repeats a
// submission with an idempotency key at another node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "jobq/job.h"
#include "nodes_cluster.h"
#include "nodes_moves.h"
#include "nodes_process.h"
#include "nodes_world.h"

namespace jobq::model {

/// Outlives each process. Confined to one thread.
class NodesClients {
 public:
  NodesClients(NodesWorld& world, Cluster& cluster) : world_(world), cluster_(cluster) {}

  /// Submits a job; `waits` is true for a caller that waits for the job.
  void submit(const NodeMove& move, bool waits);
  /// Lets a caller wait for a recent job.
  void await(const NodeMove& move);
  /// Cancels or retries a recent job, or sets its ttl.
  void change(const NodeMove& move);

  /// Returns the jobs of all submissions, also of those without an answer.
  const std::vector<JobKey>& jobs() const { return jobs_; }

 private:
  const JobKey& recent(std::uint32_t number) const;
  const Endpoint& endpointOf(const JobKey& key) const;
  JobSpec makeJob(const NodeMove& move);
  bool submitAt(NodeProcess& process, JobSpec job, const Endpoint& at, const std::string& idempotencyKey, bool waits);

  NodesWorld& world_;
  Cluster& cluster_;
  std::vector<JobKey> jobs_;
  std::uint64_t submissions_ = 0;
};

}  // namespace jobq::model

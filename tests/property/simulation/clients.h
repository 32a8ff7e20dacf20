// Clients of the API. Each call goes to a single node; after a 503 a client repeats a submission with an idempotency
// key at another node.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cluster.h"
#include "core/endpoints/endpoint.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "moves.h"
#include "process.h"
#include "world.h"

namespace jobq::model {

/// Outlives each process. Confined to one thread.
class Clients {
 public:
  Clients(World& world, Cluster& cluster) : world_(world), cluster_(cluster) {}

  /// Submits a job; the caller of Act::submitAndWait waits for the job.
  void submit(const Move& move);
  /// Lets a caller wait for a recent job.
  void await(const Move& move);
  /// Cancels, retries or streams a recent job, or sets its ttl.
  void change(const Move& move);

  /// Returns the jobs of all submissions, also of those without an answer.
  const std::vector<JobKey>& jobs() const { return jobs_; }

 private:
  const JobKey& recent(std::uint32_t number) const;
  JobSpec makeJob(const Move& move);
  std::optional<Idempotency> makeKey(const Move& move) const;
  InsertResult submitAt(Process& process, JobSpec job, const std::optional<Idempotency>& idempotency, const Move& move);
  InsertResult submitAwaited(Process& process, JobSpec job, const std::optional<Idempotency>& idempotency,
                             const Move& move);
  void cancel(Process& process, const JobKey& key);
  void stream(Process& process, const JobKey& key, std::uint32_t number);

  World& world_;
  Cluster& cluster_;
  std::vector<JobKey> jobs_;
  std::uint64_t submissions_ = 0;
};

}  // namespace jobq::model

// The model of the job store: the queue, the end of jobs by their callers, lists and counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/queue_policy.h"
#include "jobq/time.h"
#include "model_state.h"

namespace jobq::model {

/// Each operation matches the operation of the same name of JobStore.
class JobModel {
 public:
  /// The state must outlive the model.
  explicit JobModel(ModelState& state) : state_(state) {}

  InsertResult insert(JobSpec spec, const QueuePolicy& policy,
                      const std::optional<Idempotency>& idempotency = std::nullopt);
  std::optional<IdempotencyRecord> findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                        const Idempotency& idempotency) const;
  std::optional<Job> find(const JobKey& key, std::uint64_t mostBytes = kAnyBytes,
                          JobExtent extent = JobExtent::result) const;
  CancelResult cancel(const JobKey& key);
  RequeueResult requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy);
  std::size_t purgeQueued(std::string_view endpoint);
  std::optional<Instant> setTtl(const JobKey& key, Millis ttl);
  JobPage list(const JobFilter& filter, const PageWindow& window) const;
  EndpointCounts counts(std::string_view endpoint) const;
  /// Removes all jobs, regardless of any batch size.
  std::size_t remove(std::string_view endpoint);

 private:
  std::int64_t rankOf(const JobSpec& spec, const QueuePolicy& policy);

  ModelState& state_;
};

}  // namespace jobq::model

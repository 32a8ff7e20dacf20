// The store of jobs for callers. Contract: `sdk/include/jobq/job_store.h`. Reads are in `job_reads.cpp`, the insert
// with its idempotency key in `job_insert.cpp`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "connection/database_clock.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "reads/readers.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// Any thread may call the methods. The writer, the readers and the clock outlive the store.
class Jobs final : public JobStore {
 public:
  Jobs(Writer& writer, Readers& readers, const DatabaseClock& clock)
      : writer_(writer), readers_(readers), clock_(clock) {}

  InsertResult insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) override;
  std::optional<IdempotencyRecord> findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                        const Idempotency& idempotency) override;
  std::optional<Job> find(const JobKey& key, std::uint64_t mostBytes, JobExtent extent) override;
  std::vector<std::optional<JobSummary>> summaries(std::span<const JobKey> keys) override;
  CancelResult cancel(const JobKey& key) override;
  RequeueResult requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) override;
  std::size_t purgeQueued(std::string_view endpoint) override;
  std::optional<Instant> setTtl(const JobKey& key, Millis ttl) override;
  JobPage list(const JobFilter& filter, const PageWindow& window) override;
  EndpointCounts counts(std::string_view endpoint) override;
  std::map<EndpointId, EndpointCounts> allCounts() override;
  std::size_t remove(std::string_view endpoint, std::size_t batch) override;

 private:
  Writer& writer_;
  Readers& readers_;
  const DatabaseClock& clock_;
};

}  // namespace jobq::mysql

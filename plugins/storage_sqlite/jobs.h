// The store of jobs as callers see them. Contract: `sdk/include/jobq/job_store.h`. Reads are in `job_reads.cpp`, the
// insert with its idempotency key in `job_insert.cpp`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bodies/body_files.h"
#include "bodies/claimed_inputs.h"
#include "bodies/new_body.h"
#include "claims.h"
#include "connection.h"
#include "job_rows.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "reads/ended_jobs.h"
#include "reads/job_inputs.h"
#include "reads/job_listing.h"
#include "reads/readers.h"
#include "writes/counters.h"
#include "writes/running_rows.h"
#include "writes/step.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// Any thread may call the methods. All constructor arguments outlive the store.
class Jobs final : public JobStore {
 public:
  Jobs(Writer& writer, Readers& readers, LargeBodies bodies, const CommittedState& state, Clock& clock)
      : writer_(writer),
        readers_(readers),
        bodies_(bodies),
        counters_(state.counters),
        running_(state.running),
        ended_(state.ended),
        numbers_(state.numbers),
        clock_(clock),
        inputs_(readers, bodies.files, state.numbers, clock) {}

  InsertResult insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) override;
  /// Implements Storage::insertAndClaim().
  InsertedAndClaimed insertAndClaim(JobSpec&& job, const QueuePolicy& policy,
                                    const std::optional<Idempotency>& idempotency, const FusedClaim& claim);
  void insertLater(JobSpec job, const QueuePolicy& policy, std::optional<Idempotency> idempotency,
                   std::unique_ptr<InsertReceiver> receiver) override;
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
  class LaterInsert;

  /// A job to insert, and its input on the way into the storage.
  struct NewJob {
    const JobSpec& spec;
    NewBody& input;
  };
  /// Result of the step of insertAndClaim(), without large inputs.
  struct InsertedWithClaims {
    InsertResult inserted;
    std::vector<Claim> claimed;
  };

  InsertedWithClaims insertAndClaimNow(Step& step, const NewJob& job, const QueuePolicy& policy,
                                       const std::optional<Idempotency>& idempotency, const FusedClaim& claim);
  void insertBegun(const JobSpec& job, const QueuePolicy& policy, const Begun& run);
  /// Inserts a job that was not inserted before: claimed, or into the queue if `claim` is null.
  void insertNew(Step& step, const NewJob& job, const QueuePolicy& policy,
                 const std::optional<Idempotency>& idempotency, const FirstClaim* claim);
  InsertResult insertNow(Step& step, const NewJob& job, const QueuePolicy& policy,
                         const std::optional<Idempotency>& idempotency);
  void queueAgain(Step& step, const JobRow& row, JobState to, const QueuePolicy& policy, const LargeInput& input);

  Writer& writer_;
  Readers& readers_;
  const LargeBodies bodies_;
  const Counters& counters_;
  const RunningRows& running_;
  EndedJobs& ended_;
  JobNumbers& numbers_;
  Clock& clock_;
  JobInputs inputs_;
};

}  // namespace jobq::sqlite

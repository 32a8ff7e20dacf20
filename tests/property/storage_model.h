// The simplest correct storage: a list of jobs, scanned from end to end by every operation, on one thread. The model
// follows `sdk/include/jobq/storage.h` and adds no rule, so it can judge the real storages. The model can be copied: a
// question with an answer lost in a crash has two right answers, from the model before the question and from the model
// after.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "chunk_model.h"
#include "job_model.h"
#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/lease_store.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "lease_model.h"
#include "model_state.h"
#include "outbox_model.h"
#include "record_model.h"

namespace jobq::model {

/// A model for each store. The model of a store is valid as long as the storage's model. Confined to one thread.
struct StorageModel {
  JobModel jobs() { return JobModel(state); }
  LeaseModel leases() { return LeaseModel(state); }
  ChunkModel chunks() { return ChunkModel(state); }
  OutboxModel outbox() { return OutboxModel(state); }

  /// Inserts the job, and then claims. A job that meets no queue is claimed with an input of any size.
  InsertedAndClaimed insertAndClaim(const JobSpec& job, const QueuePolicy& policy,
                                    const std::optional<Idempotency>& idempotency, const FusedClaim& claim) {
    const bool hasQueue = state.hasQueue(job.endpoint);
    InsertResult inserted = jobs().insert(job, policy, idempotency);
    return {std::move(inserted), claimFused(claim, hasQueue ? kMostFusedInput : kAnyBytes)};
  }

  /// Inserts the job, begins its run `run.age` ago, and ends the run if there is an outcome.
  InsertResult insertBegun(const JobSpec& job, const QueuePolicy& policy, const Begun& run) {
    InsertResult inserted = jobs().insert(job, policy);
    leases().beginFirstRun(job.id, run);
    if (run.outcome != nullptr) (void)leases().finish({job.id, 1}, *run.outcome);
    return inserted;
  }

  /// Finishes the attempts, and then claims.
  FinishResult finish(std::span<const EndedAttempt> ends, const std::optional<FusedClaim>& claim) {
    FinishResult done;
    for (const EndedAttempt& end : ends) done.reports.push_back(leases().finish(end.lease, end.outcome));
    if (claim) done.claimed = claimFused(*claim, kMostFusedInput);
    return done;
  }

  std::vector<ClaimedJob> claimFused(const FusedClaim& claim, std::uint64_t mostBytes) {
    return leases().claim(std::vector{claim.want}, claim.holder, claim.id, mostBytes).jobs;
  }

  ModelState state;     ///< jobs with their leases, chunks and deliveries
  RecordModel records;  ///< independent of jobs
};

}  // namespace jobq::model

// The simplest correct storage: a list of jobs, scanned from end to end by every operation, on one thread. The model
// follows `sdk/include/jobq/storage.h` and adds no rule, so it can judge the real storages. The model can be copied: a
// question with an answer lost in a crash has two right answers, from the model before the question and from the model
// after.
#pragma once

#include <optional>
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

  /// Inserts the job, and then claims for `want`. A job that meets no queue is claimed with an input of any size.
  InsertedAndClaimed insertAndClaim(const JobSpec& job, const QueuePolicy& policy,
                                    const std::optional<Idempotency>& idempotency, const ClaimWant& want,
                                    const Holder& holder, CallId id) {
    const bool hasQueue = state.hasQueue(job.endpoint);
    InsertResult inserted = jobs().insert(job, policy, idempotency);
    if (!hasQueue) return {std::move(inserted), leases().claim(std::vector{want}, holder, id)};
    return {std::move(inserted), leases().claimWithin(std::vector{want}, holder, id, kMostFusedInput).jobs};
  }

  /// Inserts the job, begins its run `run.age` ago, and ends the run if there is an outcome.
  void insertRun(const JobSpec& job, const QueuePolicy& policy, const FirstRun& run, const Outcome* outcome) {
    (void)jobs().insert(job, policy, std::nullopt);
    leases().beginFirstRun(job.id, run);
    if (outcome != nullptr) (void)leases().finish({job.id, 1}, *outcome);
  }

  /// Finishes the attempt, and then claims for `want`.
  FinishedAndClaimed finishAndClaim(const LeaseRef& lease, const Outcome& outcome, const ClaimWant& want,
                                    const Holder& holder, CallId id) {
    const ReportResult finished = leases().finish(lease, outcome);
    return {finished, leases().claimWithin(std::vector{want}, holder, id, kMostFusedInput).jobs};
  }

  ModelState state;     ///< jobs with their leases, chunks and deliveries
  RecordModel records;  ///< independent of jobs
};

}  // namespace jobq::model

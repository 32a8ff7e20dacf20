#include <exception>

#include "judged_stores.h"
#include "later_insert.h"

namespace jobq::model {

InsertResult JudgedJobs::insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) {
  endpoints_.insert(job.endpoint);
  return compared_.askSynced(
      "insert of " + job.id, [&] { return compared_.real().jobs().insert(JobSpec(job), policy, terms); },
      [&](StorageModel& model) {
        const auto* begun = std::get_if<Begun>(&terms.start);
        return begun != nullptr ? model.insertBegun(job, policy, *begun)
                                : model.jobs().insert(job, policy, terms.idempotency);
      });
}

std::optional<IdempotencyRecord> JudgedJobs::findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                                  const Idempotency& idempotency) {
  auto record = compared_.ask(
      "idempotency key " + idempotency.key,
      [&] { return compared_.real().jobs().findByIdempotencyKey(endpoint, apiKeyId, idempotency); },
      [&](StorageModel& model) { return model.jobs().findByIdempotencyKey(endpoint, apiKeyId, idempotency); });
  const auto* first = record ? std::get_if<Duplicate>(&*record) : nullptr;
  if (first != nullptr) compared_.noteShown(first->id);
  return record;
}

InsertedAndClaimed JudgedJobs::insertAndClaim(JobSpec&& job, const QueuePolicy& policy,
                                              const std::optional<Idempotency>& idempotency, const FusedClaim& claim) {
  endpoints_.insert(job.endpoint);
  auto said = compared_.askUnsynced(
      "insert and claim of " + job.id,
      [&] { return compared_.real().insertAndClaim(JobSpec(job), policy, idempotency, claim); },
      [&](StorageModel& model) { return model.insertAndClaim(job, policy, idempotency, claim); });
  compared_.noteUnsynced(job.id);
  return said;
}

// Waits for the result of the real storage.
void JudgedJobs::insertLater(JobSpec job, const QueuePolicy& policy, std::optional<Idempotency> idempotency,
                             std::unique_ptr<InsertReceiver> receiver) {
  endpoints_.insert(job.endpoint);
  std::optional<InsertResult> result;
  try {
    result = compared_.askSynced(
        "later insert of " + job.id, [&] { return insertLaterAndWait(compared_.real(), job, policy, idempotency); },
        [&](StorageModel& model) { return model.jobs().insert(job, policy, idempotency); });
  } catch (...) {  // also a Disagreement, for the caller behind the receiver
    return receiver->failed(std::current_exception());
  }
  receiver->inserted(std::move(*result));
}

std::optional<Job> JudgedJobs::find(const JobKey& key, std::uint64_t mostBytes, JobExtent extent) {
  auto job = compared_.ask((extent == JobExtent::input ? "find with input of " : "find of ") + key.id + " within " +
                               std::to_string(mostBytes) + " bytes",
                           [&] { return compared_.real().jobs().find(key, mostBytes, extent); },
                           [&](StorageModel& model) { return model.jobs().find(key, mostBytes, extent); });
  if (job) compared_.noteShown(key.id);
  return job;
}

std::vector<std::optional<JobSummary>> JudgedJobs::summaries(std::span<const JobKey> keys) {
  return compared_.real().jobs().summaries(keys);
}

CancelResult JudgedJobs::cancel(const JobKey& key) {
  return compared_.askSynced(
      "cancel of " + key.id, [&] { return compared_.real().jobs().cancel(key); },
      [&](StorageModel& model) { return model.jobs().cancel(key); });
}

RequeueResult JudgedJobs::requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) {
  return compared_.askSynced(
      "requeue of " + key.id + " after attempt " + std::to_string(failedAttempt),
      [&] { return compared_.real().jobs().requeue(key, failedAttempt, policy); },
      [&](StorageModel& model) { return model.jobs().requeue(key, failedAttempt, policy); });
}

std::size_t JudgedJobs::purgeQueued(std::string_view endpoint) {
  return compared_.askSynced(
      "purge", [&] { return compared_.real().jobs().purgeQueued(endpoint); },
      [&](StorageModel& model) { return model.jobs().purgeQueued(endpoint); });
}

std::optional<Instant> JudgedJobs::setTtl(const JobKey& key, Millis ttl) {
  return compared_.askSynced(
      "ttl of " + key.id, [&] { return compared_.real().jobs().setTtl(key, ttl); },
      [&](StorageModel& model) { return model.jobs().setTtl(key, ttl); });
}

JobPage JudgedJobs::list(const JobFilter& filter, const PageWindow& window) {
  JobPage page = compared_.ask(
      "list", [&] { return compared_.real().jobs().list(filter, window); },
      [&](StorageModel& model) { return model.jobs().list(filter, window); });
  for (const Job& job : page.jobs) compared_.noteShown(job.id);
  return page;
}

// Expired jobs before their sweep may still be counted.
EndpointCounts JudgedJobs::counts(std::string_view endpoint) {
  const EndpointCounts said = compared_.real().jobs().counts(endpoint);
  compared_.drop("counts of " + std::string(endpoint), [&](StorageModel& world) -> std::string {
    world.state.now = compared_.real().now();
    EndpointCounts right = world.jobs().counts(endpoint);
    if (world.state.hasUnswept(endpoint)) {
      right.inQueue = said.inQueue;
      right.inQueueLow = said.inQueueLow;
      right.inProgress = said.inProgress;
    }
    return text(said) == text(right) ? "" : "said\n  " + text(said) + "\ninstead of\n  " + text(right);
  });
  return said;
}

// The caller adds up the removed jobs of all batches; expired jobs may be among them.
std::map<EndpointId, EndpointCounts> JudgedJobs::allCounts() { return compared_.real().jobs().allCounts(); }

std::size_t JudgedJobs::remove(std::string_view endpoint, std::size_t batch) {
  const std::size_t removed = compared_.askSynced(
      "remove", [&] { return compared_.real().jobs().remove(endpoint, batch) < batch; },
      [&](StorageModel& model) {
        model.jobs().remove(endpoint);
        return true;
      });
  return removed;
}

}  // namespace jobq::model

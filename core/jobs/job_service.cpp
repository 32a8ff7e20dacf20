#include "core/jobs/job_service.h"

#include <utility>

#include "core/base/repeated_call.h"
#include "core/jobs/claimer.h"
#include "core/jobs/deferred_insert.h"
#include "core/jobs/queue_signal.h"
#include "core/model/delivery_notifier.h"
#include "jobq/transitions.h"

namespace jobq {
namespace {

// An offset beyond the chunks of any job: a page from there has the job's state and hands out no chunk.
constexpr std::uint64_t kBeyondAnyChunk = std::uint64_t{1} << 53;

}  // namespace

InsertResult JobService::submit(JobSpec job, const Endpoint& endpoint, const std::optional<Idempotency>& idempotency) {
  const bool low = job.policy.lowPriority;
  InsertResult result = insert(std::move(job), endpoint, idempotency);
  if (std::holds_alternative<Inserted>(result)) queueSignal_.notify(endpoint.spec.id, low);
  return result;
}

InsertResult JobService::insert(JobSpec job, const Endpoint& endpoint, const std::optional<Idempotency>& idempotency) {
  const bool low = job.policy.lowPriority;
  try {
    // A call whose answer is lost leaves the job unchanged.
    return callRepeatedly([&] { return storage_.jobs().insert(std::move(job), *endpoint.policy, {idempotency}); });
  } catch (const OutcomeUnknown&) {
    queueSignal_.notify(endpoint.spec.id, low);  // the job may be in the queue
    throw;
  }
}

std::optional<IdempotencyRecord> JobService::findByIdempotencyKey(const Endpoint& endpoint, const std::string& apiKeyId,
                                                                  const Idempotency& idempotency) {
  return storage_.jobs().findByIdempotencyKey(endpoint.spec.id, apiKeyId, idempotency);
}

JobService::AwaitedSubmission JobService::submitAwaited(JobSpec job, const Endpoint& endpoint,
                                                        const std::optional<Idempotency>& idempotency, Millis wait,
                                                        CallerReads reads) {
  const bool low = job.policy.lowPriority;
  AwaitedSubmission submission{{}, await({endpoint.spec.id, job.id}, wait)};
  // A repeated key has to be found before the job runs, and only the wait knows of a job before the insert.
  const bool mayDefer = !idempotency && reads == CallerReads::wait;
  if (auto deferred = !mayDefer ? nullptr : claimer_.runForCaller(job, *endpoint.policy)) {
    submission.isDurable = false;
    submission.wait->noteDeferred(std::move(deferred));
    return submission;
  }
  const auto offered = claimer_.insertForCaller(job, *endpoint.policy, idempotency);
  submission.inserted = offered ? *offered : insert(std::move(job), endpoint, idempotency);
  submission.isDurable = !offered;
  if (const auto* first = std::get_if<Duplicate>(&submission.inserted)) {
    submission.wait = await({endpoint.spec.id, first->id}, wait);
  } else if (std::holds_alternative<KeyConflict>(submission.inserted)) {
    submission.wait.reset();
  } else if (offered) {
    submission.wait->noteOffered();
  } else {
    submission.wait->noteSubmitted(low);
  }
  return submission;
}

// The bodies of a job may grow between the two readings.
FoundJob JobService::find(const JobKey& key, OutputRoom* room, JobExtent extent) {
  if (room == nullptr) return {storage_.jobs().find(key, kAnyBytes, extent)};
  for (std::uint64_t most = OutputRoom::kFree;;) {
    auto found = storage_.jobs().find(key, most, extent);
    if (!found) return {};
    const bool isWhole = found->isWhole();
    const std::uint64_t bytes = found->bodyBytes;
    if (isWhole || !room->draw(bytes)) return {std::move(found), isWhole};
    most = bytes;
  }
}

std::optional<std::size_t> JobService::ahead(const JobKey& key, std::size_t most) {
  return storage_.leases().ahead(key, most);
}

std::unique_ptr<JobWait> JobService::await(const JobKey& key, Millis wait) {
  return std::make_unique<JobWait>(JobWait::Deps{*this, completions_, queueSignal_, claimer_}, key, wait);
}

std::optional<ChunkPage> JobService::chunks(const ChunkAsk& ask) {
  ChunkStore& store = storage_.chunks();
  if (ask.offset) return store.read(ask.key, *ask.offset, ask.maxBytes);
  return callRepeatedly([&, id = callIds_.next()] { return store.consume(ask.key, ask.maxBytes, id); });
}

std::optional<ChunkPage> JobService::presentState(const JobKey& key) { return chunks({key, kBeyondAnyChunk, 1}); }

std::unique_ptr<ChunkWait> JobService::awaitChunks(const ChunkAsk& ask) {
  return std::make_unique<ChunkWait>(*this, completions_, ask);
}

std::unique_ptr<ChunkFeed> JobService::followChunks(const JobKey& key, const ChunkPosition& from) {
  return std::make_unique<ChunkFeed>(*this, completions_, key, from);
}

std::optional<JobService::Log> JobService::log(const JobKey& key, const LogPosition& from, std::size_t maxBytes) {
  const auto present = presentState(key);
  if (!present) return std::nullopt;
  auto part = storage_.chunks().readLog(key, from, maxBytes);
  if (!part) return std::nullopt;
  return Log{std::move(*part), present->state};
}

std::optional<Instant> JobService::setTtl(const JobKey& key, Millis ttl) {
  return callRepeatedly([&] { return storage_.jobs().setTtl(key, ttl); });
}

JobPage JobService::list(const JobFilter& filter, const PageWindow& window) {
  return storage_.jobs().list(filter, window);
}

CancelResult JobService::cancel(const JobKey& key) {
  const auto wake = [&] {
    completions_.announce(key.id);
    deliveries_.notify();
  };
  try {
    CancelResult result = callRepeatedly([&] { return storage_.jobs().cancel(key); });
    if (std::holds_alternative<Cancelled>(result)) wake();
    return result;
  } catch (const OutcomeUnknown&) {
    wake();  // the job may be CANCELLED; a repeated request stops its handler
    throw;
  }
}

RequeueResult JobService::retry(const JobKey& key, const Endpoint& endpoint) {
  const auto present = presentState(key);
  if (!present) return NotFound{};
  if (!next(present->state, Trigger::retry)) return WrongState{present->state};
  try {
    RequeueResult result =
        callRepeatedly([&] { return storage_.jobs().requeue(key, present->attempt, *endpoint.policy); });
    if (std::holds_alternative<Requeued>(result)) queueSignal_.notify(endpoint.spec.id, false);
    return result;
  } catch (const OutcomeUnknown&) {
    queueSignal_.notify(endpoint.spec.id, false);  // the job may be in the queue
    throw;
  }
}

std::size_t JobService::purge(const EndpointId& endpoint) {
  try {
    const std::size_t removed = storage_.jobs().purgeQueued(endpoint);
    if (removed > 0) completions_.announceAllOf(endpoint);
    return removed;
  } catch (const StorageError&) {
    completions_.announceAllOf(endpoint);  // the storage may have removed some jobs before the failure
    throw;
  }
}

EndpointCounts JobService::counts(const EndpointId& endpoint) { return storage_.jobs().counts(endpoint); }

OwedDeliveries JobService::owed(const EndpointId& endpoint) { return storage_.outbox().owed(endpoint); }

}  // namespace jobq

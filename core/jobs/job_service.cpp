#include "core/jobs/job_service.h"

#include <algorithm>

#include "core/base/delivery_notifier.h"
#include "core/base/repeated_call.h"
#include "core/jobs/queue_signal.h"
#include "jobq/transitions.h"

namespace jobq {
namespace {

constexpr Millis kGatherLeast{100};
constexpr Millis kGatherMost{1'000};
constexpr Millis kGatherAStream{5};  // 200 requests a second, the rate limit of /stream
constexpr std::size_t kGathered = 1UL << 20;

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
    return callRepeatedly([&] { return storage_.jobs().insert(std::move(job), *endpoint.policy, idempotency); });
  } catch (const OutcomeUnknown&) {
    queueSignal_.notify(endpoint.spec.id, low);  // the job may be in the queue
    throw;
  }
}

std::optional<IdempotencyRecord> JobService::findByIdempotencyKey(const Endpoint& endpoint, const std::string& apiKeyId,
                                                                  const Idempotency& idempotency) {
  return storage_.jobs().findByIdempotencyKey(endpoint.spec.id, apiKeyId, idempotency);
}

JobService::Waited JobService::submitAndAwait(JobSpec job, const Endpoint& endpoint,
                                              const std::optional<Idempotency>& idempotency, Millis wait,
                                              const std::function<void(const InsertResult&)>& durable,
                                              const DisconnectSignal& gone) {
  const JobKey key{endpoint.spec.id, job.id};
  const Instant deadline = completions_.now() + wait;
  CompletionNotifier::Waiter waiter(completions_, key);
  const bool low = job.policy.lowPriority;
  Waited waited{insert(std::move(job), endpoint, idempotency), {}};
  durable(waited.inserted);
  if (std::holds_alternative<KeyConflict>(waited.inserted)) return waited;
  if (const auto* first = std::get_if<Duplicate>(&waited.inserted)) {
    waited.job = await({endpoint.spec.id, first->id}, wait, gone);
    return waited;
  }
  queueSignal_.notifyAndClaim(endpoint.spec.id, low);
  // Reading the job before the first wait would cost every short job one more query.
  const bool more = waiter.wait(deadline, gone);
  waited.job = readUntilEnd(key, waiter, more, deadline, gone);
  return waited;
}

std::optional<Job> JobService::find(const JobKey& key) { return storage_.jobs().find(key); }

std::optional<std::size_t> JobService::ahead(const JobKey& key, std::size_t most) {
  return storage_.leases().ahead(key, most);
}

std::optional<Job> JobService::await(const JobKey& key, Millis wait, const DisconnectSignal& gone) {
  const Instant deadline = completions_.now() + wait;
  CompletionNotifier::Waiter waiter(completions_, key);
  return readUntilEnd(key, waiter, true, deadline, gone);
}

std::optional<Job> JobService::readUntilEnd(const JobKey& key, CompletionNotifier::Waiter& waiter, bool more,
                                            Instant deadline, const DisconnectSignal& gone) {
  for (;;) {
    std::optional<Job> job = find(key);
    if (!more || !job || terminal(job->state)) return job;
    more = waiter.wait(deadline, gone);
  }
}

std::optional<ChunkPage> JobService::chunks(const ChunkAsk& ask) {
  ChunkStore& store = storage_.chunks();
  if (ask.offset) return store.read(ask.key, *ask.offset, ask.maxBytes);
  return callRepeatedly([&, id = callIds_.next()] { return store.consume(ask.key, ask.maxBytes, id); });
}

// Chunks are consumed only after the wait for further chunks: a chunk handed out cannot be put back.
JobService::Stream JobService::awaitChunks(const ChunkAsk& ask, const DisconnectSignal& gone) {
  Stream stream;
  const Instant deadline = completions_.now() + ask.wait;
  CompletionNotifier::Waiter waiter(completions_, ask.key, CompletionNotifier::Interest::chunks);
  const ChunkAsk present{ask.key, kBeyondAnyChunk, 1};
  stream.page = chunks(present);
  if (!stream.page) return stream;
  bool gathers = stream.page->state == JobState::inProgress && ask.wait > Millis(0);
  for (bool more = true;;) {
    if (gathers) (void)waiter.wait(completions_.now() + gatherTime(), gone, kGathered);
    stream.hasWaited = stream.hasWaited || gathers;
    stream.page = chunks(waiter.clientHasLeft() ? present : ask);
    if (!more || !stream.page || !stream.page->chunks.empty() || terminal(stream.page->state)) return stream;
    more = ask.wait > Millis(0) && waiter.wait(deadline, gone);
    stream.hasWaited = stream.hasWaited || ask.wait > Millis(0);
    gathers = more;
  }
}

// Returns a gathering time by which all streams together stay below the request rate allowed for one endpoint.
Millis JobService::gatherTime() const {
  const auto streams = static_cast<std::int64_t>(completions_.streams());
  return std::clamp<Millis>(kGatherAStream * streams, kGatherLeast, kGatherMost);
}

std::optional<JobService::Log> JobService::log(const JobKey& key) {
  const auto present = chunks({key, kBeyondAnyChunk, 1});
  if (!present) return std::nullopt;
  auto lines = storage_.chunks().readLog(key);
  if (!lines) return std::nullopt;
  return Log{std::move(*lines), present->state};
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
  const auto present = chunks({key, kBeyondAnyChunk, 1});  // state and attempt, without the bodies of the job
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

// A description of every type that both the host and a plugin access, as laid out by this compiler. The description is
// part of a library's manifest (abi.h), with a line `layout.<group>.<type>=<description>` for each type. The groups are
// `plugin`, with the types of all kinds, and each kind of the library's entries.
//
// A type is closed or open. Both sides must have equal closed types: either side makes objects of a closed type, stores
// objects in containers and passes objects on from one plugin to another. Only the host makes objects of an open type
// and lends the objects to the plugin; an open enumeration only goes from the plugin to the host. A later minor may
// append to an open type. The description of a closed type begins with its size and ends with a semicolon; the
// description of an open type has neither. A single rule therefore fits both: an older description is a prefix of the
// newer description.
//
// Private members are not listed; the size of their class is. sdk/abi/check.py proves that no type and no field is
// missing here.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <variant>

#include "jobq/abi_entry.h"
#include "jobq/admission_filter.h"
#include "jobq/error.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/plugin.h"
#include "jobq/queue_policy.h"
#include "jobq/rate_limiter.h"
#include "jobq/storage.h"
#include "jobq/webhook_transport.h"
#include "jobq/worker_launcher.h"
#include "jobq/worker_output.h"

namespace jobq::abi {

/// All kinds of plugins.
inline constexpr std::array kKinds{PluginKind::storage,         PluginKind::queuePolicy, PluginKind::rateLimiter,
                                   PluginKind::admissionFilter, PluginKind::handler,     PluginKind::webhookTransport,
                                   PluginKind::workerLauncher};

namespace detail {

/// Passes the digits of `number` to `put`.
template <class Put>
constexpr void putNumber(Put& put, std::size_t number) {
  std::array<char, 20> digits{};
  std::size_t first = digits.size();
  do {
    digits[--first] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  put(std::string_view(digits.data() + first, digits.size() - first));
}

/// Writes the lines of one group through `put`, which outlives the writer.
template <class Put>
class LayoutWriter {
 public:
  constexpr LayoutWriter(Put& put, std::string_view group) : put_(put), group_(group) {}

  constexpr void begin(std::string_view type) {
    put_("layout.");
    put_(group_);
    put_(".");
    put_(type);
    put_("=");
  }
  constexpr void size(std::size_t bytes, std::size_t alignment) {
    putNumber(put_, bytes);
    put_("/");
    putNumber(put_, alignment);
    put_(" ");
  }
  constexpr void field(std::string_view name, std::size_t offset, std::size_t bytes) {
    put_(name);
    put_("@");
    putNumber(put_, offset);
    put_("+");
    putNumber(put_, bytes);
    put_(",");
  }
  constexpr void enumerator(std::string_view name, std::size_t value) {
    put_(name);
    put_(":");
    putNumber(put_, value);
    put_(",");
  }
  constexpr void alternatives(std::string_view names) { put_(names); }
  constexpr void end(bool closed) { put_(closed ? ";\n" : "\n"); }

 private:
  Put& put_;
  std::string_view group_;
};

// JOBQ_EACH(step, type, a, b, ...) expands to step(type, a) step(type, b) ...; up to 64 names.
#define JOBQ_PARENTHESES ()
#define JOBQ_SCAN(...) JOBQ_SCAN_16(JOBQ_SCAN_16(JOBQ_SCAN_16(JOBQ_SCAN_16(__VA_ARGS__))))
#define JOBQ_SCAN_16(...) JOBQ_SCAN_4(JOBQ_SCAN_4(JOBQ_SCAN_4(JOBQ_SCAN_4(__VA_ARGS__))))
#define JOBQ_SCAN_4(...) JOBQ_SCAN_1(JOBQ_SCAN_1(JOBQ_SCAN_1(JOBQ_SCAN_1(__VA_ARGS__))))
#define JOBQ_SCAN_1(...) __VA_ARGS__
#define JOBQ_EACH(step, type, ...) __VA_OPT__(JOBQ_SCAN(JOBQ_EACH_STEP(step, type, __VA_ARGS__)))
#define JOBQ_EACH_STEP(step, type, name, ...) \
  step(type, name) __VA_OPT__(JOBQ_EACH_AGAIN JOBQ_PARENTHESES(step, type, __VA_ARGS__))
#define JOBQ_EACH_AGAIN() JOBQ_EACH_STEP

#define JOBQ_FIELD(type, name) writer.field(#name, offsetof(type, name), sizeof(type::name));
#define JOBQ_ENUMERATOR(type, name) writer.enumerator(#name, static_cast<std::size_t>(type::name));
#define JOBQ_BEGIN(type) writer.begin(#type)
#define JOBQ_SIZE(type) writer.size(sizeof(type), alignof(type))

#define JOBQ_CLOSED(type, ...)                           \
  JOBQ_BEGIN(type), JOBQ_SIZE(type);                     \
  JOBQ_EACH(JOBQ_FIELD, type __VA_OPT__(, ) __VA_ARGS__) \
  writer.end(true)
#define JOBQ_OPEN(type, ...)               \
  JOBQ_BEGIN(type);                        \
  JOBQ_EACH(JOBQ_FIELD, type, __VA_ARGS__) \
  writer.end(false)
#define JOBQ_CLOSED_ENUM(type, ...)             \
  JOBQ_BEGIN(type), JOBQ_SIZE(type);            \
  JOBQ_EACH(JOBQ_ENUMERATOR, type, __VA_ARGS__) \
  writer.end(true)
#define JOBQ_OPEN_ENUM(type, ...)               \
  JOBQ_BEGIN(type);                             \
  JOBQ_EACH(JOBQ_ENUMERATOR, type, __VA_ARGS__) \
  writer.end(false)
#define JOBQ_VARIANT(type, ...)                                                                                     \
  static_assert(std::same_as<type, std::variant<__VA_ARGS__>>, "the order of the alternatives is part of the ABI"); \
  JOBQ_BEGIN(type), JOBQ_SIZE(type), writer.alternatives(#__VA_ARGS__), writer.end(true)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // Both compilers of the fingerprint compute such offsets.

template <class Writer>
constexpr void describeCommon(Writer writer) {
  JOBQ_OPEN(Descriptor, size, minor, fingerprint, entries, entryCount);
  JOBQ_CLOSED(Entry, kind, name, version, declare, create, probe);
  JOBQ_OPEN_ENUM(PluginKind, storage, queuePolicy, rateLimiter, admissionFilter, handler, webhookTransport,
                 workerLauncher);
  JOBQ_OPEN_ENUM(LogLevel, debug, information, warning, error);
  JOBQ_OPEN(PluginEnv, config, clock, log, dataDir, allowPrivateAddresses, scriptsDir, receivers);
  JOBQ_CLOSED(ScriptReport, name, fault);
  JOBQ_OPEN_ENUM(CheckVerdict, passed, warned, failed);
  JOBQ_CLOSED(CheckResult, name, verdict, text);
  JOBQ_CLOSED(Plugin);
  JOBQ_CLOSED(Error);
  JOBQ_CLOSED(StorageError);
  JOBQ_CLOSED(OutcomeUnknown);
  JOBQ_CLOSED(ConfigError);
  JOBQ_CLOSED(Mutex);
  JOBQ_CLOSED(Condition);
}

template <class Writer>
constexpr void describePolicy(Writer writer) {
  JOBQ_CLOSED(QueuePolicy);
  JOBQ_CLOSED(JobPolicy, executionTimeout, ttl, lowPriority, priority);
  // Closed although a policy only reads a JobSpec: a storage plugin passes a copy of its own to the policy.
  JOBQ_CLOSED(JobSpec, id, endpoint, apiKeyId, input, webhook, s3Config, policy, retention, maxAttempts,
              retentionFailed, delay, retry, traceparent);
  JOBQ_CLOSED(RetryPolicy, most, initial, maxDelay, afterTimeout);
  JOBQ_CLOSED(GroupState, lastRank, lowestWaiting);
}

template <class Writer>
constexpr void describeLimiter(Writer writer) {
  JOBQ_CLOSED(RateLimiter);
  JOBQ_OPEN(RateLimit, requests, window, concurrent);
  JOBQ_CLOSED(RateVerdict, allowed, retryAfter, remaining);
}

template <class Writer>
constexpr void describeFilter(Writer writer) {
  JOBQ_CLOSED(AdmissionFilterFactory);
  JOBQ_CLOSED(AdmissionFilter);
  JOBQ_OPEN(AdmissionRequest, endpoint, apiKeyId, input, policy, env);
  JOBQ_CLOSED(JobPolicy, executionTimeout, ttl, lowPriority, priority);
  JOBQ_CLOSED(Accept);
  JOBQ_CLOSED(Reject, message);
  JOBQ_CLOSED(Replace, input, policy);
  JOBQ_CLOSED(Refuse, status, message, retryAfter);
  JOBQ_VARIANT(Decision, Accept, Reject, Replace, Refuse);
}

template <class Writer>
constexpr void describeHandler(Writer writer) {
  JOBQ_CLOSED(HandlerFactory);
  JOBQ_CLOSED(JobHandler);
  JOBQ_CLOSED(JobFailed);
  JOBQ_OPEN(HandlerEnv, endpoint, worker, variables, script);
}

template <class Writer>
constexpr void describeTransport(Writer writer) {
  JOBQ_CLOSED(WebhookTransport);
  JOBQ_OPEN(WebhookCall, url, headers, body, timeout);
  JOBQ_CLOSED(Delivered, status, reply);
  JOBQ_CLOSED(DeliveryFailed, reason, status, reply);
  JOBQ_VARIANT(DeliveryResult, Delivered, DeliveryFailed);
}

template <class Writer>
constexpr void describeLauncher(Writer writer) {
  JOBQ_CLOSED(WorkerLauncher);
  JOBQ_CLOSED(ContainerSpec, image, entrypoint, command, ports, diskInGb, volumeInGb, volumeMountPath, registryAuthId);
  JOBQ_OPEN(WorkerLaunch, worker, endpoint, container, env, gpuCount, gpus);
  JOBQ_CLOSED(WorkerExit, worker, isFailure, reason);
  JOBQ_CLOSED(WorkerOutput, worker, bytes);
}

template <class Writer>
constexpr void describeStorage(Writer writer) {
  describePolicy(writer);
  JOBQ_CLOSED(Storage);
  JOBQ_OPEN_ENUM(BackupResult, written, stopped);
  JOBQ_CLOSED(Capabilities, bits);
  JOBQ_CLOSED(JobStore);
  JOBQ_CLOSED(LeaseStore);
  JOBQ_CLOSED(ChunkStore);
  JOBQ_CLOSED(OutboxStore);
  JOBQ_CLOSED(NodeStore);
  JOBQ_CLOSED(RecordStore);
  JOBQ_CLOSED_ENUM(JobState, inQueue, inProgress, completed, failed, cancelled, timedOut);
  JOBQ_CLOSED(JobKey, endpoint, id);
  JOBQ_CLOSED(Job, id, endpoint, apiKeyId, state, attempt, losses, retries, lowPriority, submittedAt, queuedAt,
              startedAt, finishedAt, expiresAt, workerId, output, progress, error, input, bodyBytes);
  JOBQ_CLOSED(LeaseRef, job, attempt);
  JOBQ_CLOSED(Completed, output);
  JOBQ_CLOSED(Failed, error, output);
  JOBQ_VARIANT(Outcome, Completed, Failed);

  JOBQ_CLOSED(Idempotency, key, bodyHash);
  JOBQ_CLOSED(Queued);
  JOBQ_CLOSED(Begun, worker, holder, age, outcome);
  JOBQ_VARIANT(Start, Queued, Begun);
  JOBQ_CLOSED(OnlyIf, record, version);
  JOBQ_CLOSED(InsertTerms, idempotency, start, onlyIf);
  JOBQ_CLOSED(InsertReceiver);
  JOBQ_CLOSED(Inserted);
  JOBQ_CLOSED(Duplicate, id);
  JOBQ_CLOSED(KeyConflict);
  JOBQ_VARIANT(InsertResult, Inserted, Duplicate, KeyConflict);
  JOBQ_VARIANT(IdempotencyRecord, Duplicate, KeyConflict);
  JOBQ_CLOSED(Cancelled, lease);
  JOBQ_CLOSED(Requeued);
  JOBQ_CLOSED(WrongState, state);
  JOBQ_CLOSED(NotFound);
  JOBQ_VARIANT(CancelResult, Cancelled, WrongState, NotFound);
  JOBQ_VARIANT(RequeueResult, Requeued, WrongState, NotFound);
  JOBQ_CLOSED(JobFilter, endpoint, state, apiKeyId, idPrefix);
  JOBQ_CLOSED(PageWindow, offset, limit, cursor);
  JOBQ_OPEN_ENUM(JobExtent, result, input);
  JOBQ_CLOSED(JobPage, jobs, total, next);
  JOBQ_CLOSED(EndpointCounts, inQueue, inQueueLow, inProgress, completed, failed, retried, headWait);
  JOBQ_CLOSED(JobSummary, state, attempt, chunks);

  JOBQ_CLOSED(ClaimWant, endpoint, workers);
  JOBQ_CLOSED(Holder, node, epoch);
  JOBQ_CLOSED(ClaimedJob, lease, endpoint, worker, input, webhook, s3Config, policy, submittedAt, startedAt, runsFor,
              logLines);
  JOBQ_CLOSED(InsertedAndClaimed, inserted, claimed);
  JOBQ_CLOSED(FusedClaim, want, holder, id);
  JOBQ_CLOSED(FinishResult, reports, claimed);
  JOBQ_CLOSED(EndedAttempt, lease, outcome, tryAgainAfter);
  JOBQ_CLOSED(ReturnedJob, lease, isLoss, reason);
  JOBQ_CLOSED(ClaimResult, jobs, left);
  JOBQ_OPEN_ENUM(Durability, synced, unsynced);
  JOBQ_CLOSED_ENUM(LeaseState, held, cancelled, timedOut, deleted, takenOver);
  JOBQ_CLOSED_ENUM(ReportResult, accepted, staleAttempt);
  JOBQ_CLOSED(QueuedEndpoint, endpoint, hasNormal);
  JOBQ_CLOSED(SweepResult, stopped, finished, expired, requeuedAt, removed, more);

  JOBQ_CLOSED(Chunk, output, metrics, partial);
  JOBQ_CLOSED(ChunkPage, chunks, next, more, state, attempt);
  JOBQ_CLOSED(LogLine, at, level, text);
  JOBQ_CLOSED(LogPosition, at, skipped);
  JOBQ_CLOSED(LogPart, lines, more);

  JOBQ_CLOSED(DeliveryAttempt, at, status, duration, reason, reply);
  JOBQ_CLOSED_ENUM(DeliveryState, owed, delivered, abandoned);
  JOBQ_CLOSED(DeliveryClaim, id, number);
  JOBQ_CLOSED(HostPlaces, host, places);
  JOBQ_CLOSED(DueHosts, hosts, next);
  JOBQ_CLOSED(Delivery, id, state, url, host, job, input, dueAt, tries, claims, attempts);
  JOBQ_CLOSED(OwedDeliveries, count, oldestAge);
  JOBQ_CLOSED(OwedBounds, maxAge, maxCount);
  JOBQ_CLOSED(AbandonedDeliveries, endpoint, tooOld, tooMany);
  JOBQ_CLOSED(AbandonResult, endpoints, more);

  JOBQ_CLOSED(WorkerCounts, idle, initializing, ready, running, throttled, unhealthy);
  JOBQ_CLOSED(EndpointWorkers, endpoint, workers);
  JOBQ_CLOSED(NodeInfo, name, epoch, sinceBeat, isAlive);
  JOBQ_CLOSED_ENUM(BeatResult, extended, ended, replaced);

  JOBQ_CLOSED(Record, kind, id, name, body, version, changedAt, change);
  JOBQ_CLOSED(Stored, version);
  JOBQ_CLOSED(NameTaken, byId);
  JOBQ_CLOSED(Conflict);
  JOBQ_CLOSED(NoRecord);
  JOBQ_VARIANT(CreateResult, Stored, NameTaken);
  JOBQ_VARIANT(UpdateResult, Stored, NameTaken, Conflict, NoRecord);
  JOBQ_CLOSED(Changes, changed, removed, version);
}

#pragma GCC diagnostic pop
#undef JOBQ_PARENTHESES
#undef JOBQ_SCAN
#undef JOBQ_SCAN_16
#undef JOBQ_SCAN_4
#undef JOBQ_SCAN_1
#undef JOBQ_EACH
#undef JOBQ_EACH_STEP
#undef JOBQ_EACH_AGAIN
#undef JOBQ_FIELD
#undef JOBQ_ENUMERATOR
#undef JOBQ_BEGIN
#undef JOBQ_SIZE
#undef JOBQ_CLOSED
#undef JOBQ_OPEN
#undef JOBQ_CLOSED_ENUM
#undef JOBQ_OPEN_ENUM
#undef JOBQ_VARIANT

}  // namespace detail

/// Passes the lines of the group `plugin` to `put`, piece by piece.
template <class Put>
constexpr void describeLayout(Put& put) {
  detail::describeCommon(detail::LayoutWriter<Put>(put, "plugin"));
}

/// Passes the lines of one kind to `put`, piece by piece.
template <class Put>
constexpr void describeLayout(Put& put, PluginKind kind) {
  const detail::LayoutWriter<Put> writer(put, nameOf(kind));
  switch (kind) {
    case PluginKind::storage: return detail::describeStorage(writer);
    case PluginKind::queuePolicy: return detail::describePolicy(writer);
    case PluginKind::rateLimiter: return detail::describeLimiter(writer);
    case PluginKind::admissionFilter: return detail::describeFilter(writer);
    case PluginKind::handler: return detail::describeHandler(writer);
    case PluginKind::webhookTransport: return detail::describeTransport(writer);
    case PluginKind::workerLauncher: return detail::describeLauncher(writer);
  }
}

}  // namespace jobq::abi

// Stores that forward each call to another storage: the bases of decorators in tests. A decorator overrides the watched
// or broken calls, or has a hook around all calls. Operations in the place of several others (such as
// JobStore::insertLater() and Storage::insertAndClaim()) are not shown: their callers make the calls that every storage
// has. A decorator shows more of them by capabilities().
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/error.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq::testkit {

/// Makes the calls of a forwarding storage. Any thread calls the function.
class CallHook {
 public:
  virtual ~CallHook() = default;
  /// Makes the call, or throws in the place of the call. `operation` is a name such as "jobs.insert". `call` returns
  /// false if the call found nothing: a claim without a job, a sweep without effects, a consumption without a chunk.
  virtual void around(const char* operation, const std::function<bool()>& call) = 0;
};

/// A store in front of another store. Without a hook each call goes on directly.
template <class Store>
class Forwarding : public Store {
 protected:
  /// `inner` and the hook outlive the object.
  explicit Forwarding(Store& inner, CallHook* hook) : inner_(inner), hook_(hook) {}

  template <class Call>
  auto forward(const char* operation, Call call) {
    return forward(operation, call, [](const auto&) { return true; });
  }
  /// `finds` returns false for an answer that found nothing.
  template <class Call, class Finds>
  auto forward(const char* operation, Call call, Finds finds) {
    using Answer = decltype(call());
    if (hook_ == nullptr) return call();
    if constexpr (std::is_void_v<Answer>) {
      hook_->around(operation, [&] { return call(), true; });
    } else {
      std::optional<Answer> answer;
      hook_->around(operation, [&] {
        answer.emplace(call());
        return finds(*answer);
      });
      return Answer(std::move(*answer));
    }
  }
  bool isHooked() const { return hook_ != nullptr; }

  Store& inner_;

 private:
  CallHook* const hook_;
};

class ForwardingJobs : public Forwarding<JobStore> {
 public:
  explicit ForwardingJobs(JobStore& inner, CallHook* hook = nullptr) : Forwarding(inner, hook) {}

  /// A hook may make the call and throw OutcomeUnknown, after which the caller repeats the call with the job.
  InsertResult insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) override {
    if (!isHooked()) return inner_.insert(std::move(job), policy, terms);
    const bool hasBegun = std::holds_alternative<Begun>(terms.start);
    return forward(hasBegun ? "jobs.insertBegun" : "jobs.insert",
                   [&] { return inner_.insert(JobSpec(job), policy, terms); });
  }
  /// A hook may throw in front of the call; the receiver gets the StorageError.
  void insertLater(JobSpec job, const QueuePolicy& policy, std::optional<Idempotency> idempotency,
                   std::unique_ptr<InsertReceiver> receiver) override {
    InsertReceiver* const failed = receiver.get();
    try {
      forward("jobs.insertLater",
              [&] { inner_.insertLater(std::move(job), policy, std::move(idempotency), std::move(receiver)); });
    } catch (const StorageError&) {
      if (receiver) failed->failed(std::current_exception());
    }
  }
  std::optional<IdempotencyRecord> findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                        const Idempotency& idempotency) override {
    return forward("jobs.findByIdempotencyKey",
                   [&] { return inner_.findByIdempotencyKey(endpoint, apiKeyId, idempotency); });
  }
  std::optional<Job> find(const JobKey& key, std::uint64_t mostBytes, JobExtent extent) override {
    return forward("jobs.find", [&] { return inner_.find(key, mostBytes, extent); });
  }
  std::vector<std::optional<JobSummary>> summaries(std::span<const JobKey> keys) override {
    return forward("jobs.summaries", [&] { return inner_.summaries(keys); });
  }
  CancelResult cancel(const JobKey& key) override {
    return forward("jobs.cancel", [&] { return inner_.cancel(key); });
  }
  RequeueResult requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) override {
    return forward("jobs.requeue", [&] { return inner_.requeue(key, failedAttempt, policy); });
  }
  std::size_t purgeQueued(std::string_view endpoint) override {
    return forward("jobs.purgeQueued", [&] { return inner_.purgeQueued(endpoint); });
  }
  std::optional<Instant> setTtl(const JobKey& key, Millis ttl) override {
    return forward("jobs.setTtl", [&] { return inner_.setTtl(key, ttl); });
  }
  JobPage list(const JobFilter& filter, const PageWindow& window) override {
    return forward("jobs.list", [&] { return inner_.list(filter, window); });
  }
  EndpointCounts counts(std::string_view endpoint) override {
    return forward("jobs.counts", [&] { return inner_.counts(endpoint); });
  }
  std::map<EndpointId, EndpointCounts> allCounts() override {
    return forward("jobs.allCounts", [&] { return inner_.allCounts(); });
  }
  std::size_t remove(std::string_view endpoint, std::size_t batch) override {
    return forward("jobs.remove", [&] { return inner_.remove(endpoint, batch); });
  }
};

class ForwardingLeases : public Forwarding<LeaseStore> {
 public:
  explicit ForwardingLeases(LeaseStore& inner, CallHook* hook = nullptr) : Forwarding(inner, hook) {}

  ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                    std::uint64_t mostBytes) override {
    return forward(
        "leases.claim", [&] { return inner_.claim(wants, holder, id, mostBytes); },
        [](const auto& claimed) { return !claimed.jobs.empty(); });
  }
  std::vector<ClaimedJob> claimed(std::span<const ClaimWant> wants, CallId id) override {
    return forward("leases.claimed", [&] { return inner_.claimed(wants, id); });
  }
  std::vector<LeaseState> states(std::span<const LeaseRef> leases) override {
    return forward("leases.states", [&] { return inner_.states(leases); });
  }
  std::vector<QueuedEndpoint> queuedEndpoints() override {
    return forward("leases.queuedEndpoints", [&] { return inner_.queuedEndpoints(); });
  }
  using LeaseStore::finish;
  FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                      const std::optional<FusedClaim>& claim) override {
    return forward("leases.finish", [&] { return inner_.finish(ends, durability, claim); });
  }
  ReportResult progress(const LeaseRef& lease, std::string json) override {
    return forward("leases.progress", [&] { return inner_.progress(lease, std::move(json)); });
  }
  SweepResult giveBack(std::span<const ReturnedJob> jobs) override {
    return forward("leases.giveBack", [&] { return inner_.giveBack(jobs); });
  }
  SweepResult sweep(std::size_t max) override {
    return forward(
        "leases.sweep", [&] { return inner_.sweep(max); },
        [](const SweepResult& swept) {
          return !swept.stopped.empty() || !swept.finished.empty() || !swept.expired.empty() ||
                 !swept.requeuedAt.empty();
        });
  }
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most) override {
    return forward("leases.ahead", [&] { return inner_.ahead(key, most); });
  }
  std::vector<ClaimedJob> adopt(const Holder& holder) override {
    return forward("leases.adopt", [&] { return inner_.adopt(holder); });
  }
};

class ForwardingChunks : public Forwarding<ChunkStore> {
 public:
  explicit ForwardingChunks(ChunkStore& inner, CallHook* hook = nullptr) : Forwarding(inner, hook) {}

  ReportResult append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) override {
    return forward("chunks.append", [&] { return inner_.append(lease, first, std::move(chunks)); });
  }
  std::optional<ChunkPage> consume(const JobKey& key, std::size_t maxBytes, CallId id) override {
    return forward(
        "chunks.consume", [&] { return inner_.consume(key, maxBytes, id); },
        [](const auto& page) { return page && !page->chunks.empty(); });
  }
  std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) override {
    return forward("chunks.read", [&] { return inner_.read(key, offset, maxBytes); });
  }
  ReportResult appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) override {
    return forward("chunks.appendLog", [&] { return inner_.appendLog(lease, first, std::move(lines)); });
  }
  std::optional<LogPart> readLog(const JobKey& key, const LogPosition& from, std::uint64_t maxBytes) override {
    return forward("chunks.readLog", [&] { return inner_.readLog(key, from, maxBytes); });
  }
};

class ForwardingOutbox : public Forwarding<OutboxStore> {
 public:
  explicit ForwardingOutbox(OutboxStore& inner, CallHook* hook = nullptr) : Forwarding(inner, hook) {}

  DueHosts dueHosts(std::string_view after, std::size_t max) override {
    return forward("outbox.dueHosts", [&] { return inner_.dueHosts(after, max); });
  }
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) override {
    return forward("outbox.claimDue", [&] { return inner_.claimDue(hosts, lease); });
  }
  bool finishDelivery(const DeliveryClaim& claim, DeliveryState state) override {
    return forward("outbox.finishDelivery", [&] { return inner_.finishDelivery(claim, state); });
  }
  bool reschedule(const DeliveryClaim& claim, Millis delay) override {
    return forward("outbox.reschedule", [&] { return inner_.reschedule(claim, delay); });
  }
  bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) override {
    return forward("outbox.recordAttempt", [&] { return inner_.recordAttempt(claim, number, std::move(attempt)); });
  }
  std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit,
                             std::optional<DeliveryState> state) override {
    return forward("outbox.list", [&] { return inner_.list(endpoint, job, limit, state); });
  }
  bool replay(std::string_view id) override {
    return forward("outbox.replay", [&] { return inner_.replay(id); });
  }
  OwedDeliveries owed(std::string_view endpoint) override {
    return forward("outbox.owed", [&] { return inner_.owed(endpoint); });
  }
  AbandonResult abandonOwed(const OwedBounds& bounds, std::size_t max) override {
    return forward("outbox.abandonOwed", [&] { return inner_.abandonOwed(bounds, max); });
  }
};

class ForwardingNodes : public Forwarding<NodeStore> {
 public:
  explicit ForwardingNodes(NodeStore& inner, CallHook* hook = nullptr) : Forwarding(inner, hook) {}

  Holder join(std::string_view name, const std::optional<JobKey>& culprit) override {
    return forward("nodes.join", [&] { return inner_.join(name, culprit); });
  }
  BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override {
    return forward("nodes.beat", [&] { return inner_.beat(holder, workers); });
  }
  void leave(const Holder& holder) override {
    forward("nodes.leave", [&] { inner_.leave(holder); });
  }
  WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) override {
    return forward("nodes.count", [&] { return inner_.count(endpoint, exceptNode); });
  }
  std::vector<NodeInfo> nodes() override {
    return forward("nodes.nodes", [&] { return inner_.nodes(); });
  }
};

class ForwardingRecords : public Forwarding<RecordStore> {
 public:
  explicit ForwardingRecords(RecordStore& inner, CallHook* hook = nullptr) : Forwarding(inner, hook) {}

  CreateResult create(Record record) override {
    return forward("records.create", [&] { return inner_.create(std::move(record)); });
  }
  UpdateResult update(Record record, std::uint64_t expectedVersion) override {
    return forward("records.update", [&] { return inner_.update(std::move(record), expectedVersion); });
  }
  std::optional<Record> find(std::string_view kind, std::string_view id) override {
    return forward("records.find", [&] { return inner_.find(kind, id); });
  }
  std::vector<Record> list(std::string_view kind) override {
    return forward("records.list", [&] { return inner_.list(kind); });
  }
  bool remove(std::string_view kind, std::string_view id) override {
    return forward("records.remove", [&] { return inner_.remove(kind, id); });
  }
  Changes changedSince(std::string_view kind, std::uint64_t version) override {
    return forward("records.changedSince", [&] { return inner_.changedSince(kind, version); });
  }
};

/// The thread rules of the inner storage apply. With a hook all calls but now() and leaseLife() pass through the hook.
/// Without one the stores are those of the inner storage, and a decorator overrides the replaced stores.
class ForwardingStorage : public Forwarding<Storage> {
 public:
  explicit ForwardingStorage(Storage& inner, CallHook* hook = nullptr)
      : Forwarding(inner, hook),
        jobs_(inner.jobs(), hook),
        leases_(inner.leases(), hook),
        chunks_(inner.chunks(), hook),
        outbox_(inner.outbox(), hook),
        nodes_(inner.nodes(), hook),
        records_(inner.records(), hook) {}

  JobStore& jobs() override { return isHooked() ? jobs_ : inner_.jobs(); }
  LeaseStore& leases() override { return isHooked() ? leases_ : inner_.leases(); }
  ChunkStore& chunks() override { return isHooked() ? chunks_ : inner_.chunks(); }
  OutboxStore& outbox() override { return isHooked() ? outbox_ : inner_.outbox(); }
  NodeStore& nodes() override { return isHooked() ? nodes_ : inner_.nodes(); }
  RecordStore& records() override { return isHooked() ? records_ : inner_.records(); }
  Capabilities capabilities() const noexcept override { return only({Capability::adopt, Capability::backup}); }
  std::optional<Millis> leaseLife() const noexcept override { return inner_.leaseLife(); }
  Instant now() override { return inner_.now(); }
  void check() override {
    forward("check", [&] { inner_.check(); });
  }
  BackupResult backupTo(const std::filesystem::path& file, std::stop_token stop) override {
    return forward("backupTo", [&] { return inner_.backupTo(file, stop); });
  }
  InsertedAndClaimed insertAndClaim(JobSpec&& job, const QueuePolicy& policy,
                                    const std::optional<Idempotency>& idempotency, const FusedClaim& claim) override {
    return forward("insertAndClaim", [&] { return inner_.insertAndClaim(std::move(job), policy, idempotency, claim); });
  }

 protected:
  /// Returns the capabilities of the inner storage among `shown`.
  Capabilities only(Capabilities shown) const noexcept {
    shown.bits &= inner_.capabilities().bits;
    return shown;
  }

 private:
  ForwardingJobs jobs_;
  ForwardingLeases leases_;
  ForwardingChunks chunks_;
  ForwardingOutbox outbox_;
  ForwardingNodes nodes_;
  ForwardingRecords records_;
};

}  // namespace jobq::testkit

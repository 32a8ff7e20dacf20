// The six stores of the memory storage. Contract: `sdk/include/jobq/storage.h`. Each operation is a critical section
// over the shared state. Records have a separate mutex, because no step changes a job together with a record. Any
// thread may call the methods. The state and the clock outlive the stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/chunk_store.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/lease_store.h"
#include "jobq/mutex.h"
#include "jobq/node_store.h"
#include "jobq/outbox_store.h"
#include "jobq/planned.h"
#include "jobq/queue_policy.h"
#include "jobq/record_store.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "jobq/transitions.h"
#include "memory_rows.h"
#include "memory_state.h"

namespace jobq::memory {

/// Most jobs that a purge removes in one critical section.
inline constexpr std::size_t kPurgeBatch = 1'000;

class Jobs final : public JobStore {
 public:
  Jobs(State& state, Capabilities capabilities) : s_(state), capabilities_(capabilities) {}
  InsertResult insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) override;
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
  void insertBegun(JobSpec&& job, const QueuePolicy& policy, const Begun& run);
  EndpointCounts countsOf(Endpoint& endpoint, Instant now) JOBQ_REQUIRES(s_.mutex);
  /// Returns the result of the first request under the key, if made within kIdempotencyLife.
  static std::optional<IdempotencyRecord> earlier(const Endpoint& endpoint, const IdempotencyRef& key,
                                                  const Idempotency& idempotency, Instant now);
  void remember(Endpoint& endpoint, IdempotencyRef key, const Idempotency& idempotency, const JobSpec& job, Instant now)
      JOBQ_REQUIRES(s_.mutex);
  void place(std::shared_ptr<const JobSpec> spec, Endpoint& endpoint, std::int64_t rank, Instant now)
      JOBQ_REQUIRES(s_.mutex);
  /// Removes up to kPurgeBatch queued jobs that arrived up to the number `last`. Their rows move to `dead`.
  void purgeSome(Endpoint& endpoint, std::uint64_t last, Rows& dead) JOBQ_REQUIRES(s_.mutex);
  /// Adds the only row of `fresh` to the endpoint and to the indexes of its state. Without memory nothing changes.
  void placeRun(Rows& fresh, Endpoint& endpoint, Instant now) JOBQ_REQUIRES(s_.mutex);

  State& s_;
  const Capabilities capabilities_;
};

/// A claimed job as the critical section shows it. The input is copied behind the section.
struct ClaimedRow {
  std::shared_ptr<const JobSpec> spec;
  std::uint32_t attempt;
  WorkerId worker;
  Instant submittedAt;
  Instant startedAt;
  Millis runsFor;
  std::uint64_t logLines;
};

/// An outcome as a change of state, made in front of the critical section.
struct Report {
  explicit Report(const Outcome& outcome);
  Trigger trigger = Trigger::complete;
  Text output;  ///< null: an empty output
  std::string error;
};

class Leases final : public LeaseStore {
 public:
  explicit Leases(State& state) : s_(state) {}
  ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                    std::uint64_t mostBytes) override;
  std::vector<ClaimedJob> claimed(std::span<const ClaimWant> wants, CallId id) override;
  std::vector<LeaseState> states(std::span<const LeaseRef> leases) override;
  std::vector<QueuedEndpoint> queuedEndpoints() override;
  FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                      const std::optional<FusedClaim>& claim) override;
  ReportResult progress(const LeaseRef& lease, std::string json) override;
  SweepResult giveBack(std::span<const ReturnedJob> jobs) override;
  SweepResult sweep(std::size_t max) override;
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most) override;

 private:
  ReportResult finishNow(const LeaseRef& lease, Report& report, Instant now) JOBQ_REQUIRES(s_.mutex);
  void claimFor(const ClaimWant& want, const Holder& holder, CallId id, Instant now, InputBound& bound,
                std::vector<ClaimedRow>& taken) JOBQ_REQUIRES(s_.mutex);
  /// Gives the jobs of a claim that failed back to their queues.
  void sendBack(const std::vector<ClaimedRow>& taken) JOBQ_REQUIRES(s_.mutex);
  void markClaimed(Row& row, const WorkerId& worker, const Holder& holder, Instant now) JOBQ_REQUIRES(s_.mutex);
  void freeExpired(Instant now, std::size_t max, Rows& dead, SweepResult& swept) JOBQ_REQUIRES(s_.mutex);
  void timeOut(Row& row, Instant now, SweepResult& swept) JOBQ_REQUIRES(s_.mutex);
  /// The sets of one sweep, or of one call of giveBack().
  struct Lost {
    SweepResult& swept;
    std::set<EndpointId> requeuedAt{};
    DiscardedChunks discarded{};
  };
  void loseOne(Row& row, Instant now, Lost& lost) JOBQ_REQUIRES(s_.mutex);
  std::size_t dropIdempotencyKeys(Instant now, std::size_t max) JOBQ_REQUIRES(s_.mutex);
  State& s_;
};

class Chunks final : public ChunkStore {
 public:
  explicit Chunks(State& state) : s_(state) {}
  ReportResult append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) override;
  std::optional<ChunkPage> consume(const JobKey& key, std::size_t maxBytes, CallId id) override;
  std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) override;
  ReportResult appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) override;
  std::optional<LogPart> readLog(const JobKey& key, const LogPosition& from, std::uint64_t maxBytes) override;

 private:
  State& s_;
};

class Outbox final : public OutboxStore {
 public:
  explicit Outbox(State& state) : s_(state) {}
  DueHosts dueHosts(std::string_view after, std::size_t max) override;
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) override;
  bool finishDelivery(const DeliveryClaim& claim, DeliveryState state) override;
  bool reschedule(const DeliveryClaim& claim, Millis delay) override;
  bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) override;
  std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit,
                             std::optional<DeliveryState> state) override;
  bool replay(std::string_view id) override;

 private:
  OwedDeliveries owed(std::string_view endpoint) override;
  AbandonResult abandonOwed(const OwedBounds& bounds, std::size_t max) override;

  State& s_;
};

class Nodes final : public NodeStore {
 public:
  explicit Nodes(State& state) : s_(state) {}
  Holder join(std::string_view name, const std::optional<JobKey>& culprit) override;
  BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override;
  void leave(const Holder& holder) override;
  WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) override;
  std::vector<NodeInfo> nodes() override;

 private:
  State& s_;
};

class Records final : public RecordStore {
 public:
  explicit Records(Clock& clock) : clock_(clock) {}
  CreateResult create(Record record) override;
  UpdateResult update(Record record, std::uint64_t expectedVersion) override;
  std::optional<Record> find(std::string_view kind, std::string_view id) override;
  std::vector<Record> list(std::string_view kind) override;
  bool remove(std::string_view kind, std::string_view id) override;
  Changes changedSince(std::string_view kind, std::uint64_t version) override;

 private:
  struct Removal {
    std::string kind;
    std::string id;
    Instant at{};
  };
  std::optional<std::string> holderOf(const Record& record) const JOBQ_REQUIRES(mutex_);
  void forgetRemovals(Instant now) JOBQ_REQUIRES(mutex_);

  Clock& clock_;
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Record> records_ JOBQ_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Removal> removals_ JOBQ_GUARDED_BY(mutex_);  // by version
  std::uint64_t version_ JOBQ_GUARDED_BY(mutex_) = 0;
};

}  // namespace jobq::memory

// The stores of the judge: each operation asks the real store and the model of the store, and compares the answers. The
// comparison must outlive the stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comparison.h"
#include "jobq/call_id.h"
#include "jobq/chunk_store.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/lease_store.h"
#include "jobq/node_store.h"
#include "jobq/outbox_store.h"
#include "jobq/queue_policy.h"
#include "jobq/record_store.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "storage_model.h"

namespace jobq::model {

/// Remembers the endpoints of all jobs.
class JudgedJobs final : public JobStore {
 public:
  explicit JudgedJobs(Comparison& compared) : compared_(compared) {}

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

  /// Judges Storage::insertAndClaim().
  InsertedAndClaimed insertAndClaim(JobSpec&& job, const QueuePolicy& policy,
                                    const std::optional<Idempotency>& idempotency, const FusedClaim& claim);

  const std::set<EndpointId>& endpoints() const { return endpoints_; }

 private:
  Comparison& compared_;
  std::set<EndpointId> endpoints_;
};

class JudgedLeases final : public LeaseStore {
 public:
  explicit JudgedLeases(Comparison& compared) : compared_(compared) {}

  ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                    std::uint64_t mostBytes) override;
  std::vector<ClaimedJob> claimed(std::span<const ClaimWant> wants, CallId id) override;
  std::vector<LeaseState> states(std::span<const LeaseRef> leases) override;
  std::vector<QueuedEndpoint> queuedEndpoints() override;
  using LeaseStore::finish;
  FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                      const std::optional<FusedClaim>& claim) override;
  ReportResult progress(const LeaseRef& lease, std::string json) override;
  SweepResult giveBack(std::span<const ReturnedJob> jobs) override;
  SweepResult sweep(std::size_t max) override;
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most) override;

 private:
  Comparison& compared_;
};

/// Compares the lives only; the beats of workers belong to no job.
class JudgedNodes final : public NodeStore {
 public:
  explicit JudgedNodes(Comparison& compared) : compared_(compared) {}

  Holder join(std::string_view name, const std::optional<JobKey>& culprit) override;
  BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override {
    return compared_.real().nodes().beat(holder, workers);
  }
  /// Not played: a storage of a single process ends its lives with join().
  void leave(const Holder&) override { throw Disagreement("leave() has no model"); }
  WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) override {
    return compared_.real().nodes().count(endpoint, exceptNode);
  }
  std::vector<NodeInfo> nodes() override { return compared_.real().nodes().nodes(); }

 private:
  Comparison& compared_;
};

class JudgedChunks final : public ChunkStore {
 public:
  explicit JudgedChunks(Comparison& compared) : compared_(compared) {}

  ReportResult append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) override;
  std::optional<ChunkPage> consume(const JobKey& key, std::size_t maxBytes, CallId id) override;
  std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) override;
  ReportResult appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) override;
  std::optional<LogPart> readLog(const JobKey& key, const LogPosition& from, std::uint64_t maxBytes) override;

 private:
  /// Notes a page that shows the end of the job.
  void noteShown(const JobKey& key, const std::optional<ChunkPage>& page);

  Comparison& compared_;
};

class JudgedOutbox final : public OutboxStore {
 public:
  explicit JudgedOutbox(Comparison& compared) : compared_(compared) {}

  DueHosts dueHosts(std::string_view after, std::size_t max) override;
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) override;
  bool finishDelivery(const DeliveryClaim& claim, DeliveryState state) override;
  bool reschedule(const DeliveryClaim& claim, Millis delay) override;
  bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) override;
  std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit,
                             std::optional<DeliveryState> state) override;
  bool replay(std::string_view id) override;
  OwedDeliveries owed(std::string_view endpoint) override;
  AbandonResult abandonOwed(const OwedBounds& bounds, std::size_t max) override;

 private:
  Comparison& compared_;
};

/// A storage may count versions in any way (`tests/property/record_model.h`). Remembers the kinds of all records.
class JudgedRecords final : public RecordStore {
 public:
  explicit JudgedRecords(Comparison& compared) : compared_(compared) {}

  CreateResult create(Record record) override;
  UpdateResult update(Record record, std::uint64_t expectedVersion) override;
  std::optional<Record> find(std::string_view kind, std::string_view id) override;
  std::vector<Record> list(std::string_view kind) override;
  bool remove(std::string_view kind, std::string_view id) override;
  Changes changedSince(std::string_view kind, std::uint64_t version) override;

  /// Returns the first difference in records of the kinds named so far; empty without a difference.
  std::string difference(StorageModel& model);

 private:
  Comparison& compared_;
  std::set<std::string> kinds_;
};

}  // namespace jobq::model

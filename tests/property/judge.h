// A storage that asks two others: the real one, and the model. Every verb but findFinished is put to both, and where
// their answers differ, a Disagreement says so. Whoever uses the storage, a test or the core, does not notice.
//
// A verb that throws StorageError leaves a doubt: until the storage is opened again it has not happened, and then it
// may have, because its bytes may have reached the disk. So there are several worlds from then on; those that an answer
// contradicts are dropped, and when none is left, the storage is wrong. (The first failure alone leaves a doubt: a
// storage whose disk has failed writes nothing more until it is opened again.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/chunk_store.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/lease_store.h"
#include "jobq/outbox_store.h"
#include "jobq/queue_policy.h"
#include "jobq/record_store.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "jobq/worker_store.h"
#include "storage_model.h"

namespace jobq::model {

class Disagreement : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// One thread at a time. The workers' beats pass through: they are no job's. Others may store records of other kinds
/// meanwhile.
class Judge final : public Storage, JobStore, LeaseStore, ChunkStore, OutboxStore, RecordStore {
 public:
  /// Null: not open yet.
  explicit Judge(std::shared_ptr<Storage> real);
  ~Judge() override;

  /// The process that had the storage open is gone, and this one took its place.
  void reopen(std::shared_ptr<Storage> real);
  void close() { real_.reset(); }

  /// Compares everything that can be asked; throws Disagreement.
  void inspect();

  /// What was found first; empty so far. Kept, because the core may catch what a verb throws.
  const std::string& disagreement() const { return disagreement_; }
  const StorageModel& model() const { return worlds_.front(); }
  Storage& real() { return *real_; }

  JobStore& jobs() override { return *this; }
  LeaseStore& leases() override { return *this; }
  ChunkStore& chunks() override { return *this; }
  OutboxStore& outbox() override { return *this; }
  WorkerStore& workers() override { return real_->workers(); }
  RecordStore& records() override { return *this; }
  Instant now() override { return real_->now(); }
  void check() override { real_->check(); }

 private:
  InsertResult insert(JobSpec job, const QueuePolicy& policy, const std::optional<Idempotency>& idempotency) override;
  std::optional<IdempotencyRecord> findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                        const Idempotency& idempotency) override;
  std::optional<Job> find(const JobKey& key) override;
  std::vector<Job> findFinished(std::span<const JobKey> keys) override;
  CancelResult cancel(const JobKey& key) override;
  RequeueResult requeue(const JobKey& key, const QueuePolicy& policy) override;
  std::size_t purgeQueued(std::string_view endpoint) override;
  std::optional<Instant> setTtl(const JobKey& key, Millis ttl) override;
  JobPage list(const JobFilter& filter, const PageWindow& window) override;
  EndpointCounts counts(std::string_view endpoint) override;
  std::size_t remove(std::string_view endpoint, std::size_t batch) override;

  std::vector<ClaimedJob> claim(std::span<const ClaimWant> wants, const Holder& holder) override;
  std::vector<LeaseState> renew(std::span<const LeaseRef> leases, Millis lease) override;
  ReportResult finish(const LeaseRef& lease, Outcome outcome) override;
  ReportResult progress(const LeaseRef& lease, std::string json) override;
  std::size_t release(std::span<const LeaseRef> leases) override;
  SweepResult sweep(std::size_t max) override;
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most) override;

  ReportResult append(const LeaseRef& lease, std::vector<Chunk> chunks) override;
  std::optional<ChunkPage> take(const JobKey& key, std::size_t maxBytes) override;
  std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) override;
  ReportResult appendLog(const LeaseRef& lease, std::vector<LogLine> lines) override;
  std::optional<std::vector<LogLine>> readLog(const JobKey& key) override;

  DueHosts dueHosts(std::string_view after, std::size_t max) override;
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) override;
  bool settle(const DeliveryClaim& claim, DeliveryState state) override;
  bool reschedule(const DeliveryClaim& claim, Millis delay) override;
  bool recordAttempt(const DeliveryClaim& claim, DeliveryAttempt attempt) override;
  std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit) override;
  bool replay(std::string_view id) override;
  OwedDeliveries owed(std::string_view endpoint) override;
  AbandonResult abandonOwed(const OwedBounds& bounds, std::size_t max) override;

  CreateResult create(Record record) override;
  UpdateResult update(Record record, std::uint64_t expectedVersion) override;
  std::optional<Record> find(std::string_view kind, std::string_view id) override;
  std::vector<Record> list(std::string_view kind) override;
  bool remove(std::string_view kind, std::string_view id) override;
  Changes changedSince(std::string_view kind, std::uint64_t version) override;

  template <class Ask, class Expect>
  auto ask(const std::string& action, Ask real, Expect expected);
  void drop(const std::string& action, const std::function<std::string(StorageModel&)>& contradiction);
  /// What is first found to differ of the kinds that were named.
  std::string differenceInRecords(StorageModel& model);

  std::shared_ptr<Storage> real_;
  std::vector<StorageModel> worlds_;  // never empty
  std::vector<StorageModel> doubts_;  // join them when the storage is opened again
  std::set<EndpointId> endpoints_;
  std::set<std::string> kinds_;
  bool failed_ = false;  // since the storage was opened
  std::string disagreement_;
};

}  // namespace jobq::model

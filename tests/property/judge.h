// A storage in front of two others: the real storage and the model. Every operation except findFinished goes to both,
// and a difference between their answers is thrown as a Disagreement. The user of the storage, a test or the core, does
// not notice the judge.
//
// An operation with a StorageError leaves a doubt: until the storage is opened again the operation has not happened,
// and afterwards it may have, because its bytes may have reached the disk. From then on there are several worlds. A
// world contradicted by an answer is dropped; with no world left, the storage is wrong. Only the first failure leaves a
// doubt: after a failure of its disk a storage writes no more until opened again.
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

/// Confined to one thread at a time. The beats of workers pass through, because beats belong to no job. Other threads
/// may store records of other kinds meanwhile.
class Judge final : public Storage, JobStore, LeaseStore, ChunkStore, OutboxStore, RecordStore {
 public:
  /// Null means not open yet.
  explicit Judge(std::shared_ptr<Storage> real);
  ~Judge() override;

  /// Replaces the dead process, which had the storage open, by a new process with `real`.
  void reopen(std::shared_ptr<Storage> real);
  void close() { real_.reset(); }

  /// Compares every value open to reading; throws Disagreement.
  void inspect();

  /// Returns the first disagreement; empty without any. The text is kept because the core may catch the exception.
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
  /// Returns the first difference in records of the kinds named so far.
  std::string differenceInRecords(StorageModel& model);

  std::shared_ptr<Storage> real_;
  std::vector<StorageModel> worlds_;  // never empty
  std::vector<StorageModel> doubts_;  // worlds that join the others when the storage is opened again
  std::set<EndpointId> endpoints_;
  std::set<std::string> kinds_;
  bool failed_ = false;  // a call failed since the storage was opened
  std::string disagreement_;
};

}  // namespace jobq::model

// The simplest correct storage: one list of jobs, looked through from end to end by every verb, on one thread. It says
// what storage.h says and nothing else, so it is the judge of the real ones; and it can be copied, so that a question
// whose answer was lost in a crash has two right answers: the model before it, and the model after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "jobq/transitions.h"
#include "record_model.h"

namespace jobq::model {

/// The text of an error that the store words itself: any but an empty one is right.
inline constexpr char kAnyError[] = "*";

struct Entry {
  JobSpec spec;
  Job job;  // as find() answers it
  std::int64_t rank = 0;
  std::uint64_t arrival = 0;
  bool expiryFixed = false;
  Instant deadline{};
  std::optional<Instant> leaseEnd;  // of a timed lease
  bool ownerDied = false;           // a process lease whose process is gone
  std::vector<Chunk> chunks;
  std::size_t taken = 0;
  std::vector<LogLine> log;
};

struct Owed {
  Delivery delivery;
  Instant owedAt{};
  Instant settledAt{};
};

struct IdempotencyEntry {
  Idempotency words;
  JobId job;
  Instant endsAt{};
};

/// Each verb is the one of its face. One thread.
class StorageModel {
 public:
  Instant now{};        ///< set by the caller before each verb
  RecordModel records;  ///< the records' verbs, which are no job's

  InsertResult insert(JobSpec spec, const QueuePolicy& policy, const std::optional<Idempotency>& idempotency);
  std::optional<IdempotencyRecord> findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                        const Idempotency& idempotency) const;
  std::optional<Job> find(const JobKey& key) const;
  std::vector<Job> findFinished(std::span<const JobKey> keys) const;
  CancelResult cancel(const JobKey& key);
  RequeueResult requeue(const JobKey& key, const QueuePolicy& policy);
  std::size_t purgeQueued(std::string_view endpoint);
  std::optional<Instant> setTtl(const JobKey& key, Millis ttl);
  JobPage list(const JobFilter& filter, const PageWindow& window) const;
  EndpointCounts counts(std::string_view endpoint) const;
  /// All of them, whatever the batch.
  std::size_t remove(std::string_view endpoint);

  std::vector<ClaimedJob> claim(std::span<const ClaimWant> wants, const Holder& holder);
  std::vector<LeaseState> renew(std::span<const LeaseRef> leases, Millis lease);
  ReportResult finish(const LeaseRef& lease, const Outcome& outcome);
  ReportResult progress(const LeaseRef& lease, const std::string& json);
  std::size_t release(std::span<const LeaseRef> leases);
  /// Unbounded.
  SweepResult sweep();
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most) const;

  ReportResult append(const LeaseRef& lease, const std::vector<Chunk>& chunks);
  std::optional<ChunkPage> take(const JobKey& key, std::size_t maxBytes);
  std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) const;
  ReportResult appendLog(const LeaseRef& lease, std::vector<LogLine> lines);
  std::optional<std::vector<LogLine>> readLog(const JobKey& key) const;

  DueHosts dueHosts(std::string_view after, std::size_t max) const;
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease);
  bool settle(const DeliveryClaim& claim, DeliveryState state);
  bool reschedule(const DeliveryClaim& claim, Millis delay);
  bool recordAttempt(const DeliveryClaim& claim, DeliveryAttempt attempt);
  std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit) const;
  bool replay(std::string_view id);
  OwedDeliveries owed(std::string_view endpoint) const;
  /// Unbounded.
  AbandonResult abandonOwed(const OwedBounds& bounds);

  /// The process that had the storage open is gone without a goodbye.
  void processDied();

  /// What has not been swept yet, expired jobs among them.
  const std::vector<Entry>& entries() const { return entries_; }
  /// An expired job that still waits for its sweep: the counters may or may not know.
  bool hasUnswept(std::string_view endpoint) const;

 private:
  struct Counters {
    std::uint64_t completed = 0;
    std::uint64_t failed = 0;
    std::uint64_t retried = 0;
  };

  const Entry* at(std::string_view id) const;
  Entry* at(std::string_view id);
  const Entry* at(const JobKey& key) const;
  Entry* at(const JobKey& key);
  Entry* held(const LeaseRef& lease);
  std::int64_t rankOf(const JobSpec& spec, const QueuePolicy& policy);
  Entry* first(const EndpointId& endpoint);
  /// Who waits at an endpoint, in the order in which they will be claimed.
  std::vector<const Entry*> line(std::string_view endpoint) const;
  ClaimedJob take(Entry& entry, const WorkerId& worker, const Holder& holder);
  void end(Entry& entry, Trigger trigger, std::string error, std::string output);
  void sendBack(Entry& entry, Trigger trigger);
  void lose(Entry& entry, SweepResult& swept);
  void removeIf(const std::function<bool(const Entry&)>& goes);
  Owed* delivery(std::string_view id);
  Owed* claimed(const DeliveryClaim& claim);  // null unless the claim is the delivery's last one

  std::vector<Entry> entries_;  // in the order of their submission
  std::vector<Owed> outbox_;    // oldest first
  std::map<std::pair<EndpointId, std::string>, std::int64_t> lastRanks_;
  std::map<std::tuple<EndpointId, std::string, std::string>, IdempotencyEntry> idempotencyKeys_;
  std::map<EndpointId, Counters, std::less<>> counters_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace jobq::model

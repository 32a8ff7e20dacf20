// The simplest correct storage: a list of jobs, scanned from end to end by every operation, on one thread. The model
// follows `sdk/include/jobq/storage.h` and adds no rule, so it can judge the real storages. The model can be copied: a
// question whose answer was lost in a crash has two right answers, from the model before the question and from the
// model after.
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

/// The text of an error worded by the store: any text except an empty one is right.
inline constexpr char kAnyError[] = "*";

struct Entry {
  JobSpec spec;
  Job job;  // the result of find()
  std::int64_t rank = 0;
  std::uint64_t arrival = 0;
  bool expiryFixed = false;
  Instant deadline{};
  std::optional<Instant> leaseEnd;  // end of a timed lease
  bool ownerDied = false;           // a process lease without a living process
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

/// Each operation matches the operation of the same name in its store. Confined to one thread.
class StorageModel {
 public:
  Instant now{};        ///< set by the caller before each operation
  RecordModel records;  ///< the operations on records, independent of jobs

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
  /// Removes all jobs, regardless of any batch size.
  std::size_t remove(std::string_view endpoint);

  std::vector<ClaimedJob> claim(std::span<const ClaimWant> wants, const Holder& holder);
  std::vector<LeaseState> renew(std::span<const LeaseRef> leases, Millis lease);
  ReportResult finish(const LeaseRef& lease, const Outcome& outcome);
  ReportResult progress(const LeaseRef& lease, const std::string& json);
  std::size_t release(std::span<const LeaseRef> leases);
  /// Sweeps without a bound.
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
  /// Abandons without a bound.
  AbandonResult abandonOwed(const OwedBounds& bounds);

  /// Ends the process, which had the storage open, without an orderly close.
  void processDied();

  /// Returns all entries before their sweep, expired jobs included.
  const std::vector<Entry>& entries() const { return entries_; }
  /// Returns true if an expired job still waits for its sweep: the counters may or may not include the job.
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
  /// Returns the queued jobs of an endpoint in the order of their claims.
  std::vector<const Entry*> line(std::string_view endpoint) const;
  ClaimedJob take(Entry& entry, const WorkerId& worker, const Holder& holder);
  void end(Entry& entry, Trigger trigger, std::string error, std::string output);
  void sendBack(Entry& entry, Trigger trigger);
  void lose(Entry& entry, SweepResult& swept);
  void removeIf(const std::function<bool(const Entry&)>& goes);
  Owed* delivery(std::string_view id);
  Owed* claimed(const DeliveryClaim& claim);  // null unless the claim is the last claim of the delivery

  std::vector<Entry> entries_;  // in the order of submission
  std::vector<Owed> outbox_;    // oldest first
  std::map<std::pair<EndpointId, std::string>, std::int64_t> lastRanks_;
  std::map<std::tuple<EndpointId, std::string, std::string>, IdempotencyEntry> idempotencyKeys_;
  std::map<EndpointId, Counters, std::less<>> counters_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace jobq::model

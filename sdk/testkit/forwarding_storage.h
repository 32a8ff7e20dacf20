// Stores that pass each call on to another storage. Decorators of tests derive from the classes and override the
// watched or broken calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq::test {

class PassedJobs : public JobStore {
 public:
  /// `inner` outlives the object, as in each class of the file.
  explicit PassedJobs(JobStore& inner) : inner_(inner) {}

  InsertResult insert(JobSpec&& job, const QueuePolicy& policy,
                      const std::optional<Idempotency>& idempotency) override {
    return inner_.insert(std::move(job), policy, idempotency);
  }
  std::optional<IdempotencyRecord> findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                        const Idempotency& idempotency) override {
    return inner_.findByIdempotencyKey(endpoint, apiKeyId, idempotency);
  }
  std::optional<Job> find(const JobKey& key) override { return inner_.find(key); }
  std::vector<std::optional<JobSummary>> summaries(std::span<const JobKey> keys) override {
    return inner_.summaries(keys);
  }
  CancelResult cancel(const JobKey& key) override { return inner_.cancel(key); }
  RequeueResult requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) override {
    return inner_.requeue(key, failedAttempt, policy);
  }
  std::size_t purgeQueued(std::string_view endpoint) override { return inner_.purgeQueued(endpoint); }
  std::optional<Instant> setTtl(const JobKey& key, Millis ttl) override { return inner_.setTtl(key, ttl); }
  JobPage list(const JobFilter& filter, const PageWindow& window) override { return inner_.list(filter, window); }
  EndpointCounts counts(std::string_view endpoint) override { return inner_.counts(endpoint); }
  std::size_t remove(std::string_view endpoint, std::size_t batch) override { return inner_.remove(endpoint, batch); }

 protected:
  JobStore& inner_;
};

class PassedLeases : public LeaseStore {
 public:
  explicit PassedLeases(LeaseStore& inner) : inner_(inner) {}

  std::vector<ClaimedJob> claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id) override {
    return inner_.claim(wants, holder, id);
  }
  std::vector<ClaimedJob> claimed(std::span<const ClaimWant> wants, CallId id) override {
    return inner_.claimed(wants, id);
  }
  std::vector<LeaseState> states(std::span<const LeaseRef> leases) override { return inner_.states(leases); }
  std::vector<QueuedEndpoint> queuedEndpoints() override { return inner_.queuedEndpoints(); }
  ReportResult finish(const LeaseRef& lease, Outcome outcome) override {
    return inner_.finish(lease, std::move(outcome));
  }
  ReportResult progress(const LeaseRef& lease, std::string json) override {
    return inner_.progress(lease, std::move(json));
  }
  std::size_t release(std::span<const LeaseRef> leases) override { return inner_.release(leases); }
  SweepResult sweep(std::size_t max) override { return inner_.sweep(max); }
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most) override { return inner_.ahead(key, most); }

 protected:
  LeaseStore& inner_;

 private:
  std::vector<ClaimedJob> doAdopt(const Holder& holder) override { return inner_.adopt(holder); }
  SweepResult doLose(std::span<const LeaseRef> leases) override { return inner_.lose(leases); }
  std::vector<ReportResult> doFinishAll(std::span<const EndedAttempt> ends) override { return inner_.finishAll(ends); }
};

class PassedNodes : public NodeStore {
 public:
  explicit PassedNodes(NodeStore& inner) : inner_(inner) {}

  Holder join(std::string_view name) override { return inner_.join(name); }
  BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override {
    return inner_.beat(holder, workers);
  }
  void leave(const Holder& holder) override { inner_.leave(holder); }
  WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) override {
    return inner_.count(endpoint, exceptNode);
  }
  std::vector<NodeInfo> nodes() override { return inner_.nodes(); }

 protected:
  NodeStore& inner_;
};

/// A decorator overrides the replaced stores.
class PassedStorage : public Storage {
 public:
  explicit PassedStorage(Storage& inner) : inner_(inner) {}

  JobStore& jobs() override { return inner_.jobs(); }
  LeaseStore& leases() override { return inner_.leases(); }
  ChunkStore& chunks() override { return inner_.chunks(); }
  OutboxStore& outbox() override { return inner_.outbox(); }
  NodeStore& nodes() override { return inner_.nodes(); }
  RecordStore& records() override { return inner_.records(); }
  std::optional<Millis> leaseLife() const noexcept override { return inner_.leaseLife(); }
  Instant now() override { return inner_.now(); }
  void check() override { inner_.check(); }

 protected:
  Storage& inner_;
};

}  // namespace jobq::test

// The storage of the plugin `memory`: its content ends with the process.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/plugin.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "memory_state.h"
#include "memory_stores.h"

namespace jobq::memory {

class MemoryStorage final : public Storage {
 public:
  /// With `leaseLife` several servers in one process may share the storage, as tests do. The plugin has no such
  /// setting, because processes do not share a memory.
  explicit MemoryStorage(const PluginEnv& env, std::optional<Millis> leaseLife = std::nullopt)
      : leaseLife_(leaseLife),
        state_(env.clock, *env.receivers, leaseLife),
        jobs_(state_),
        leases_(state_),
        chunks_(state_),
        outbox_(state_),
        nodes_(state_),
        records_(env.clock) {}

  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }
  ChunkStore& chunks() override { return chunks_; }
  OutboxStore& outbox() override { return outbox_; }
  NodeStore& nodes() override { return nodes_; }
  RecordStore& records() override { return records_; }
  std::optional<Millis> leaseLife() const noexcept override { return leaseLife_; }
  Instant now() override { return state_.clock.now(); }
  void check() override {}
  std::optional<FinishedAndClaimed> finishAndClaim(const LeaseRef& lease, const Outcome& outcome, const ClaimWant& want,
                                                   const Holder& holder, CallId id) override {
    return leases_.finishAndClaim(lease, outcome, want, holder, id);
  }

 private:
  bool doInsertsRuns() const noexcept override { return !leaseLife_; }
  void doInsertRun(const JobSpec& job, const QueuePolicy& policy, const FirstRun& run,
                   const Outcome* outcome) override {
    jobs_.insertRun(job, policy, run, outcome);
  }
  // Servers that share a storage in tests have the operations of a shared storage.
  bool doInsertsLater() const noexcept override { return !leaseLife_; }
  void doInsertLater(JobSpec&& job, const QueuePolicy& policy, std::optional<Idempotency>&& idempotency,
                     std::unique_ptr<InsertReceiver> receiver) override {
    std::optional<InsertResult> result;
    try {
      result = jobs_.insert(std::move(job), policy, idempotency);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (...) {
      return receiver->failed(std::current_exception());
    }
    receiver->inserted(std::move(*result));
  }

  const std::optional<Millis> leaseLife_;
  State state_;
  Jobs jobs_;
  Leases leases_;
  Chunks chunks_;
  Outbox outbox_;
  Nodes nodes_;
  Records records_;
};

}  // namespace jobq::memory

// The storage of the plugin `memory`: its content ends with the process.
#pragma once

#include <optional>

#include "jobq/plugin.h"
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
        jobs_(state_, capabilitiesWith(leaseLife)),
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
  /// Servers that share a storage in tests have the operations of a shared storage.
  Capabilities capabilities() const noexcept override { return capabilitiesWith(leaseLife_); }

 private:
  static Capabilities capabilitiesWith(std::optional<Millis> leaseLife) noexcept {
    if (leaseLife) return {Capability::finishAndClaim};
    return {Capability::finishAndClaim, Capability::insertBegun, Capability::insertLater};
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

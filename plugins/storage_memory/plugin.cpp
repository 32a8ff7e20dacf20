// Plugin `storage_memory`: a storage whose content ends with the process. Meant for tests, benchmarks and queues with
// jobs that may be lost.
#include "jobq/abi.h"
#include "memory_stores.h"

namespace {

using namespace jobq;

class MemoryStorage final : public Storage {
 public:
  explicit MemoryStorage(const PluginEnv& env)
      : state_(env.clock, *env.receivers),
        jobs_(state_),
        leases_(state_),
        chunks_(state_),
        outbox_(state_),
        workers_(env.clock),
        records_(env.clock) {}

  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }
  ChunkStore& chunks() override { return chunks_; }
  OutboxStore& outbox() override { return outbox_; }
  WorkerStore& workers() override { return workers_; }
  RecordStore& records() override { return records_; }
  Instant now() override { return state_.clock.now(); }
  void check() override {}

 private:
  memory::State state_;
  memory::Jobs jobs_;
  memory::Leases leases_;
  memory::Chunks chunks_;
  memory::Outbox outbox_;
  memory::Workers workers_;
  memory::Records records_;
};

constexpr abi::Entry kEntries[] = {abi::entry<Storage, MemoryStorage>("memory", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)

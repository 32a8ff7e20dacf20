// The memory storage for tests of one class: with a clock moved by hand, and calls that fail on demand.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/workers/node/node_life.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/plugin.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/recording_log.h"
#include "testkit/wait_for.h"
#include "tests/fault/faulty_storage.h"

namespace jobq::test {

/// Serves the jobs of an endpoint in the order of their arrival.
class ArrivalOrder final : public QueuePolicy {
 public:
  std::string group(const JobSpec&) const override { return {}; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState&) const override { return 0; }
};

/// The storage with its clock, log and policy. Declare this member first in a fixture, because all other members use
/// the storage.
struct UnitStorage {
  UnitStorage() {
    const testkit::MapConfig config;
    auto memory = testkit::loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_memory.so", "memory",
                                               PluginEnv{config, clock, log, "/nowhere", false});
    real = memory.get();
    faulty = std::make_unique<fault::FaultyStorage>(std::move(memory), faults);
    life = std::make_unique<NodeLife>(*real, "node");
    life->join();
  }

  /// Returns the storage for a class under test.
  Storage& operator*() const { return *faulty; }
  Storage* operator->() const { return faulty.get(); }

  /// Stores a queued job, without the planned faults.
  void insert(const JobId& id, const EndpointId& endpoint = "ep") const {
    JobSpec job;
    job.id = id;
    job.endpoint = endpoint;
    job.input = "{}";
    (void)real->jobs().insert(std::move(job), policy);
  }
  /// Claims the next job of the endpoint, without the planned faults.
  ClaimedJob claim(const WorkerId& worker = "w", const EndpointId& endpoint = "ep") const {
    const ClaimWant want{endpoint, {worker}};
    return real->leases().claim({&want, 1}, life->holder(), 1).jobs.at(0);
  }
  JobState stateOf(const JobId& id, const EndpointId& endpoint = "ep") const {
    return real->jobs().find({endpoint, id}).value().state;
  }

  testkit::ManualClock clock;
  testkit::RecordingLog log;
  ArrivalOrder policy;
  fault::FaultPlan faults{clock};
  Storage* real = nullptr;  ///< the same storage without the faults
  std::unique_ptr<Storage> faulty;
  std::unique_ptr<NodeLife> life;  ///< has joined as "node"
};

inline constexpr std::chrono::seconds kSoon = testkit::kHangDeadline;  ///< how long a test waits for another thread

/// Returns true when `condition` holds, false after kSoon. Use as `ASSERT_TRUE(holdsSoon([&] { ... })) << "what did not
/// happen"`.
template <class Condition>
bool holdsSoon(Condition&& condition) {
  return testkit::holdsInTime(condition, [](int) {});
}

}  // namespace jobq::test

// The parts of a simulation of nodes that outlive each process: the true time, the storage with its judge, the
// endpoints, and the source of chance. The clock of the storage is the true time; each host has a separate clock.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "nodes_judge.h"
#include "nodes_observer.h"
#include "nodes_twins.h"
#include "random_operations.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"

namespace jobq::model {

/// The clock of a host, and the server's clock on it (`core/base/clock.h`): the clock never goes back, and follows a
/// step forwards by a tenth of the passing time. A new process begins with the time of the host.
class HostClock final : public Clock {
 public:
  HostClock(const Clock& time, Millis offset) : time_(time), hostOffset_(offset), offset_(offset) {}

  Instant now() const override { return time_.now() + offset_; }
  /// Refuses to wait: the simulation has one thread.
  void waitUntil(Mutex& mutex, Condition&, Instant) override JOBQ_REQUIRES(mutex);

  /// Sets the time of the host, by `step` at most an hour away from the true time.
  void stepHost(Millis step);
  /// Follows the time of the host after `passed`.
  void follow(Millis passed);
  /// Lets the clock stand still for a time that has passed already.
  void standStill(Millis passed) { offset_ -= passed; }
  /// Begins a new process.
  void restart() { offset_ = hostOffset_; }

 private:
  const Clock& time_;
  Millis hostOffset_;
  Millis offset_;
};

/// A source of chance from the seed and the time only, so a left-out move changes no later step (SplitMix64).
class Chance {
 public:
  using result_type = std::uint64_t;
  explicit Chance(std::uint64_t seed) : seed_(seed), state_(seed) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return UINT64_MAX; }
  result_type operator()();
  /// Begins a step of time.
  void restart(Instant now);

 private:
  const std::uint64_t seed_;
  std::uint64_t state_;
};

/// Confined to one thread.
struct NodesWorld {
  NodesWorld(Twin twin, std::uint64_t seed);

  std::uint32_t chance(std::uint32_t sides) { return static_cast<std::uint32_t>(random() % sides); }

  const Flaws flaws;
  Chance random;
  testkit::ManualClock time;
  CallerClock storageClock{time};
  testkit::SilentLog silence;
  const Turns policy;
  std::vector<EndpointPtr> endpoints;
  NodesJudge judge{time};
  std::unique_ptr<Storage> store;   // the plugin, perhaps broken
  std::unique_ptr<Storage> broken;  // in front of the plugin; null without a broken twin
  std::unique_ptr<ObservedStorage> storage;
  bool isCalm = false;  // the schedule is over: workers start, threads are on time, and handlers return
};

}  // namespace jobq::model

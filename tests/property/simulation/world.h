// The parts of a simulation that outlive each process: the true time, the storage with its judge and rules, the
// endpoints, and the source of chance. Each host has a separate clock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comparison.h"
#include "core/endpoints/endpoint.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "judge.h"
#include "moves.h"
#include "random_operations.h"
#include "rules.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "twins.h"

namespace jobq::model {

/// The plan of a world.
struct Plan {
  NodeSetup setup = NodeSetup::several;
  /// Opens the storage of one node for a new process. Several nodes share one memory storage.
  std::function<std::shared_ptr<Storage>(Clock&)> open{};
  /// Compares the answers to one node with the model's. Otherwise only effects visible to a user are checked.
  bool judged = true;
  Twin twin = Twin::none;

  bool isShared() const { return setup == NodeSetup::several; }
  /// Acknowledged changes survive a loss of power; the disk is Disk::instance().
  bool losesPower() const { return setup == NodeSetup::oneOnDisk; }
};

/// The clock of a host, and the server's clock on it (`core/base/clock.h`): the clock never goes back, and follows a
/// step forwards by a tenth of the passing time. A new process begins with the time of the host. Any thread reads the
/// time; one thread plays the rest.
class HostClock final : public Clock {
 public:
  HostClock(const Clock& time, Millis offset) : time_(time), hostOffset_(offset), offset_(offset) {}

  Instant now() const override { return time_.now() + offset_.load(); }
  /// Waits for a notification, in rounds: the schedule does the work of the threads that wait for a time.
  void waitUntil(Mutex& mutex, Condition& condition, Instant) override JOBQ_REQUIRES(mutex);

  /// Sets the time of the host, by `step` at most an hour away from the true time.
  void stepHost(Millis step);
  /// Follows the time of the host after `passed`.
  void follow(Millis passed);
  /// Lets the clock stand still for a time that has passed already.
  void standStill(Millis passed) { offset_ = offset_.load() - passed; }
  /// Begins a new process.
  void restart() { offset_ = hostOffset_; }
  /// Shows the time of another clock.
  void show(const HostClock& other) { offset_ = other.offset_.load(); }

 private:
  const Clock& time_;
  Millis hostOffset_;
  std::atomic<Millis> offset_;
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
class World {
 public:
  World(Plan how, std::uint64_t seed);

  std::uint32_t chance(std::uint32_t sides) { return static_cast<std::uint32_t>(random() % sides); }
  /// Returns an endpoint for any number. Half of the work for one node is for the remote workers.
  const Endpoint& endpoint(std::uint32_t number) const;
  const EndpointPtr& endpointOf(const JobKey& key) const;

  /// Returns the storage with its rules.
  Storage& storage() { return *observed_; }
  /// Opens the storage for a process of one node. Asks for the jobs at risk in the last loss of power: an end on the
  /// disk stays. Throws StorageError.
  void open(Clock& clock);
  /// Closes the storage of one node, and ends a loss of power.
  void close();
  /// Returns true after a loss of power.
  bool isCut() const;
  /// Notes a failure of the storage. Only a storage without power, or a storage of several nodes, may fail.
  void failed(const StorageError& error);
  /// Throws the first finding or disagreement, if any.
  void throwFinding() const;
  /// Compares the whole storage with the model.
  void inspect();

  const Plan plan;
  Chance random;
  testkit::ManualClock time;
  HostClock storageClock{time, Millis(0)};  // of several nodes
  const Turns policy;
  std::vector<EndpointPtr> endpoints;
  Rules rules;
  testkit::SilentLog silence;
  std::unique_ptr<Storage> store;  // the plugin of several nodes
  bool isCalm = false;             // the schedule is over: workers start, threads are on time, and handlers return

 private:
  std::unique_ptr<Storage> broken_;  // in front of the plugin of several nodes
  Judge judge_{nullptr};             // in front of the plugin of one node
  FormerEnd formerEnd_ = FormerEnd::process;
  std::unique_ptr<Storage> observed_;
};

/// Returns a time for any number: moments, leases, retention and ttl; mostly the time of a lease, to get late reports.
Millis jumpOf(std::uint32_t number);

}  // namespace jobq::model

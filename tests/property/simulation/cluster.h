// The hosts of a simulation. Each has a clock, a way to the storage, and one process after another. Time passes for all
// hosts together. At several nodes time passes in steps of a quarter of a second; each thread of each process does the
// due work in each step.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/time.h"
#include "process.h"
#include "testkit/forwarding_storage.h"
#include "wire.h"
#include "world.h"

namespace jobq::model {

class Cluster;

class Host final : private WireEvents {
 public:
  Host(World& world, Cluster& cluster, std::string name, Millis offset);

  /// Starts a process, unless one runs. The start may fail. A process of one node opens the storage.
  void start();
  /// Stops the process in order.
  void stop();
  /// Ends the process at once.
  void crash();
  /// Lets the process stand still. A suspended host's clock stands still, too.
  void pause(Millis time, bool isSuspended);
  /// Refuses all calls (of one operation) for a time.
  void cut(Millis time, std::string operation);
  /// Ends pauses and cuts, and starts a process unless one runs. No power cut comes later, even a cut during the
  /// checkpoint after the last commit.
  void heal();
  /// Removes the dead process. Starts the next process of one node at once, perhaps at another time of day.
  void recover();
  /// Does the work of a step of time.
  void step(Millis passed);

  /// Returns the process if it can act; otherwise null.
  Process* process();
  /// Returns the process, which can act.
  Process& running() { return *process(); }
  Wire& wire() { return wire_; }
  HostClock& clock() { return clock_; }
  const std::string& name() const { return name_; }

 private:
  struct Pause {
    Instant begunAt{};
    Instant endsAt{};
    bool isSuspended = false;
  };
  void passDuringCall(Millis time, bool standsStill) override;
  void die() override;
  void beforeCall(std::string_view operation) override;
  void enterStorage(bool inside) override;
  void beginPause();
  void endPause(bool isSuspended, Millis paused);
  void noteExcuse();

  World& world_;
  Cluster& cluster_;
  const std::string name_;
  HostClock clock_;
  Wire wire_{*this};
  std::optional<testkit::ForwardingStorage> storage_{};  // of several nodes
  std::unique_ptr<Process> process_;
  int processes_ = 0;
  std::optional<Pause> pause_;
  bool standsStill_ = false;  // inside a call
  std::optional<Instant> cutUntil_;
  std::optional<Instant> excusedSince_;  // the node stood still, and has neither beaten nor fenced itself since
  Instant excusedUntil_{};
};

class Cluster final {
 public:
  Cluster(World& world, std::size_t nodes);

  /// Lets time pass for all hosts.
  void pass(Millis time);
  Host& host(std::size_t number) { return *hosts_[number % hosts_.size()]; }
  const std::vector<std::unique_ptr<Host>>& hosts() const { return hosts_; }

 private:
  World& world_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace jobq::model

// The hosts of the simulation of nodes. Each has a clock, a way to the storage, and one process after another. Time
// passes for all hosts together, in steps of a quarter of a second; each thread of each process does the due work in
// each step.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/time.h"
#include "nodes_process.h"
#include "nodes_wire.h"
#include "nodes_world.h"

namespace jobq::model {

/// Lets time pass for all hosts.
class Passage {
 public:
  virtual ~Passage() = default;
  virtual void pass(Millis time) = 0;
};

class NodeHost final : private WireEvents {
 public:
  NodeHost(NodesWorld& world, Passage& passage, std::string name, Millis offset);

  /// Starts a process, unless one runs. The start may fail.
  void start();
  /// Stops the process in order.
  void stop();
  /// Ends the process at once.
  void crash();
  /// Lets the process stand still. A suspended host's clock stands still, too.
  void pause(Millis time, bool isSuspended);
  /// Refuses all calls (of one operation) for a time.
  void cut(Millis time, std::string operation);
  /// Ends pauses and cuts.
  void heal();
  /// Does the work of a step of time.
  void step(Millis passed);
  /// Removes a dead process. Called outside all calls of the process.
  void removeDead();

  /// Returns the process if it can act; otherwise null.
  NodeProcess* process();
  Wire& wire() { return wire_; }
  HostClock& clock() { return clock_; }
  const std::string& name() const { return name_; }

 private:
  struct Pause {
    Instant begunAt{};
    Instant endsAt{};
    bool isSuspended = false;
  };
  void passDuringCall(Millis time) override { passage_.pass(time); }
  void passDuringPause(Millis time) override;
  void die() override;
  void beforeCall(std::string_view operation) override;
  void enterStorage(bool inside) override { world_.storageClock.setCaller(inside ? &clock_ : nullptr); }
  void beginPause();
  void endPause(bool isSuspended, Millis paused);
  void noteExcuse();

  NodesWorld& world_;
  Passage& passage_;
  const std::string name_;
  HostClock clock_;
  Wire wire_{*this};
  WiredStorage storage_;
  std::unique_ptr<NodeProcess> process_;
  int processes_ = 0;
  std::optional<Pause> pause_;
  bool standsStill_ = false;  // inside a call
  std::optional<Instant> cutUntil_;
  std::optional<Instant> excusedSince_;  // the node stood still, and has neither beaten nor fenced itself since
  Instant excusedUntil_{};
};

class Cluster final : public Passage {
 public:
  Cluster(NodesWorld& world, std::size_t nodes);

  void pass(Millis time) override;
  NodeHost& host(std::size_t number) { return *hosts_[number % hosts_.size()]; }
  const std::vector<std::unique_ptr<NodeHost>>& hosts() const { return hosts_; }
  void removeDead();

 private:
  NodesWorld& world_;
  std::vector<std::unique_ptr<NodeHost>> hosts_;
};

}  // namespace jobq::model

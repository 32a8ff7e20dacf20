// The look at the containers of a server: ended ones are reported and removed, unknown ones are removed.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine.h"
#include "engine_text.h"
#include "jobq/log.h"
#include "output_follower.h"
#include "worker_table.h"

namespace jobq::docker {

/// Used by one thread. The arguments of the constructor outlive the object.
class ContainerWatcher {
 public:
  ContainerWatcher(Engine& engine, WorkerTable& table, OutputFollower& outputs, std::string server, Log& log)
      : engine_(engine), table_(table), outputs_(outputs), server_(std::move(server)), log_(log) {}

  /// Looks at all containers once. The first look that finds no running container of an earlier life opens the table
  /// for starts. A daemon that does not answer changes nothing about the workers with containers.
  void watchContainers();

 private:
  void watchListed(const std::vector<ListedContainer>& containers);
  /// Both return false if a container of an earlier life is left and may run.
  bool watchContainer(const ListedContainer& container);
  bool removeLeftover(const ListedContainer& container);
  void endFailed(const ListedContainer& container, const WatchedWorker& worker);
  void endRunning(const ListedContainer& container, const WatchedWorker& worker);
  void noteFault(const EngineFault& fault);
  void noteAnswer();

  Engine& engine_;
  WorkerTable& table_;
  OutputFollower& outputs_;
  const std::string server_;
  Log& log_;
  bool isConnected_ = false;        // the versions of the present daemon are known
  bool isFailing_ = false;          // the last call failed, and the log has a line about the failure
  bool isOpen_ = false;             // the table is open
  std::set<std::string> stubborn_;  // containers whose failed removal is in the log
};

}  // namespace jobq::docker

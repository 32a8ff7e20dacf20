// One to three nodes on one storage, on one thread and with clocks moved by hand: the real job service, dispatcher,
// pools, lease keeper, change poller, notifier and sweeper of each node over the memory storage. Handlers, clients, the
// network, processes and hosts are played. A schedule of moves decides, and every schedule recurs with the same seed.
//
// The rules at every step are the rules of `nodes_judge.h`. When the schedule is over, all faults end and all nodes
// run. After a few seconds each run with an end in the storage is stopped. When handlers have returned, no job waits or
// is held without a handler, each caller is answered, each result and each count is the judge's, and all nodes together
// have at most workersMax workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nodes_clients.h"
#include "nodes_cluster.h"
#include "nodes_findings.h"
#include "nodes_judge.h"
#include "nodes_moves.h"
#include "nodes_twins.h"
#include "nodes_world.h"

namespace jobq::model {

/// Confined to one thread.
class NodesSimulation {
 public:
  NodesSimulation(Twin twin, std::uint64_t seed);

  /// Plays the moves, then lets all jobs come to their end. Throws Finding.
  void play(const std::vector<NodeMove>& moves);

  const Played& played() const { return world_.judge.findings.played; }

 private:
  void act(const NodeMove& move);
  void planFault(const NodeMove& move);
  void check();
  void runToRest();
  void checkStops();
  bool isQuiet();
  void checkRest();

  NodesWorld world_;
  Cluster cluster_;
  NodesClients clients_{world_, cluster_};
};

}  // namespace jobq::model

// The core in a simulated world, on one thread and with clocks moved by hand: the real job service, dispatcher, pools,
// sweeper and storage of one node, or of one to three nodes with their lease keepers, change pollers and notifiers.
// Handlers, clients, remote workers, webhook deliveries, the network, processes, hosts and the power are played. A
// schedule of moves decides the next event, and recurs with the same seed. Over SQLite with power cuts a seed may take
// another course, because the storage has separate threads.
//
// One node has a storage of its own, on memory or on a disk, whose every answer equals the answer of the model
// (`tests/property/judge.h`). Each turn of a thread is a move, so every interleaving of turns can occur. Several nodes
// share one memory storage, and their threads work while time passes, through a network that fails.
//
// The rules at every step are the rules of `rules.h`; a worker has one job at a time. Rules at rest: no job waits
// beside a worker able to run the job, no job is held without a handler, no caller waits for an ended job, and no
// worker and no webhook is lost. At several nodes each run with an end in the storage is stopped after a few seconds,
// each result and each count is right, and all nodes together have at most workersMax workers.
#pragma once

#include <cstdint>
#include <vector>

#include "clients.h"
#include "cluster.h"
#include "findings.h"
#include "moves.h"
#include "outside.h"
#include "process.h"
#include "world.h"

namespace jobq::model {

/// Confined to one thread.
class Simulation {
 public:
  Simulation(Plan plan, std::uint64_t seed);

  /// Plays the moves, then lets all jobs come to their end. Throws Finding or Disagreement.
  void play(const std::vector<Move>& moves);

  const auto& played() const { return world_.rules.findings.played; }

 private:
  void act(const Move& move);
  void actAtOne(const Move& move, Process& process);
  void planFault(const Move& move);
  void check();
  void runToRest();
  void finishAll();
  void checkStops();
  void runToQuiet();
  bool stepTowardsQuiet();
  void checkQuiet();
  bool isAtRest();
  void checkRest();
  void checkCallers();
  void checkCounts();

  World world_;
  Cluster cluster_;
  Clients clients_{world_, cluster_};
  RemoteWorkers remote_{world_};
  DeliveryCallers deliveries_{world_};
};

}  // namespace jobq::model

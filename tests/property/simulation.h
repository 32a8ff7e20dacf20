// The core in a simulated world: the real job service, dispatcher and sweeper with their storage, on one thread with a
// clock moved by hand. Workers, remote workers, webhook deliveries, crashes and power cuts are played. A schedule of
// operations decides the next event, so every interleaving of turns can occur, and recurs with the same seed. Over
// SQLite with power cuts a seed may take another course, because the storage has separate threads.
//
// Rules at every step: every answer of the storage equals the answer of the model (`tests/property/judge.h`); a worker
// has one job at a time, and a job one worker; a result is accepted from the last attempt alone, and a job succeeds
// once. A loss of power may undo an unreported end. Rules at rest: no job waits beside a worker able to run the job, no
// job is held without a holder, no caller waits for an ended job, and no worker is lost.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation_callers.h"
#include "simulation_machine.h"
#include "simulation_moves.h"
#include "simulation_workers.h"
#include "simulation_world.h"

namespace jobq::model {

/// Runs one life of the core after another, until the schedule is over. Confined to one thread.
class Simulation {
 public:
  Simulation(SimulationPlan plan, std::uint64_t seed);

  /// Plays the moves, then lets all jobs come to their end. Throws Finding or Disagreement.
  void play(const std::vector<Move>& moves);

 private:
  void act(const Move& move);
  void runToRest();
  bool stepTowardsQuiet();
  void checkRest();
  void checkQuiet();
  void checkRules() const;
  void checkWorkers();
  void checkAnswers() const;

  World world_;
  RemoteWorkers remote_{world_};
  Machine machine_{world_};
  Clients clients_{world_, machine_};
  DeliveryCallers deliveries_{world_};
};

}  // namespace jobq::model

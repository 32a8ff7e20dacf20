#include "simulation.h"

#include <string>
#include <utility>

#include "../fault/disk.h"

namespace jobq::model {
namespace {

constexpr std::uint64_t kReach = 40;  // steps of the disk until an announced power cut

}  // namespace

Simulation::Simulation(SimulationPlan plan, std::uint64_t seed) : world_(std::move(plan), seed) { machine_.open(); }

void Simulation::act(const Move& move) {
  LocalWorkers& workers = machine_.workers();
  Process& process = machine_.process();
  switch (move.act) {
    case Act::submit: return clients_.submit(move, false);
    case Act::submitAndClaim: return clients_.submit(move, true);
    case Act::await: return clients_.await(move);
    case Act::resume: (void)clients_.resume(); return;
    case Act::turn: process.dispatcher.runPassIfDue(); return;
    case Act::start: return workers.finishStart(move);
    case Act::leave: return workers.finishStop();
    case Act::report:
      return !workers.running().empty() && move.a % 2 == 0 ? workers.report(move) : remote_.report(move);
    case Act::finish:
      if (!workers.running().empty()) workers.finish(move.a % workers.running().size(), move, process.reports);
      return;
    case Act::remoteClaim: return remote_.claim(move);
    case Act::remoteAsk: return remote_.ask(move);
    case Act::remoteFinish:
      if (!remote_.running().empty()) remote_.finish(move.a % remote_.running().size(), move, process.reports);
      return;
    case Act::cancel:
    case Act::retry:
    case Act::ttl:
    case Act::stream: return clients_.change(move);
    case Act::purge: (void)process.jobs.purge(world_.endpoint(move.a)->spec.id); return;
    case Act::sweep: return process.sweeper.sweepAll();
    case Act::deliver: return deliveries_.deliver(move);
    case Act::advance:
      machine_.process().inserts.storeAll();  // by the timer, in the first milliseconds
      world_.clock->advance(jumpOf(move.a));
      return;
    case Act::newLife: return machine_.beginLife();
    case Act::stop: return machine_.restart();
    case Act::crash: fault::Disk::instance().cutAt(1 + move.a % kReach); return;
  }
}

void Simulation::checkAnswers() const {
  if (!world_.judge->disagreement().empty()) throw Disagreement(world_.judge->disagreement());
}

void Simulation::play(const std::vector<Move>& moves) {
  for (const Move& move : moves) {
    try {
      act(move);
    } catch (const StorageError& error) {
      world_.rules.check(world_.plan.canCrash && fault::Disk::instance().isCut(),
                         std::string("the storage failed: ") + error.what());
    }
    checkAnswers();
    machine_.recover();
    checkWorkers();
  }
  runToRest();
}

}  // namespace jobq::model

#include "simulation.h"

#include <array>
#include <string>
#include <utility>

#include "../../fault/disk.h"

namespace jobq::model {
namespace {

constexpr std::array kSteps{250, 250, 500, 1'000, 1'000, 2'000, 3'000, 5'000, 8'000, 12'000};
constexpr std::array kOutages{2'000, 6'000, 11'000, 12'000, 13'000, 14'000, 16'000, 20'000, 40'000};
constexpr std::uint32_t kReach = 40;  // steps of the disk until an announced power cut

}  // namespace

Simulation::Simulation(Plan plan, std::uint64_t seed)
    : world_(std::move(plan), seed), cluster_(world_, world_.plan.isShared() ? 1 + seed % 3 : 1) {}

// Plans a fault of one of the next calls. An operation without a name is any operation.
void Simulation::planFault(const Move& move) {
  constexpr std::array kFaults{WireFault::refused,    WireFault::requestLost, WireFault::answerLost,
                               WireFault::answerLost, WireFault::slowRequest, WireFault::slowAnswer,
                               WireFault::pause,      WireFault::crash};
  constexpr std::array kOperations{"",           "leases.claim", "leases.claim",    "leases.finish", "leases.finish",
                                   "nodes.beat", "nodes.join",   "leases.giveBack", "leases.sweep",  "leases.claimed",
                                   "jobs.insert"};
  constexpr std::array kTimes{1U, 1U, 2U, 4U};
  Wire::Plan plan;
  plan.fault = kFaults[move.a % kFaults.size()];
  plan.operation = kOperations[move.a / 8 % kOperations.size()];
  plan.skipped = plan.operation.empty() ? move.b % 8 : 0;
  plan.times = kTimes[move.b / 8 % kTimes.size()];
  plan.time = Millis(kOutages[move.b / 32 % (kOutages.size() - 1)]);
  if (plan.fault == WireFault::pause || plan.fault == WireFault::crash) plan.times = 1;
  cluster_.host(move.node).wire().plan(plan);
}

void Simulation::act(const Move& move) {
  Host& host = cluster_.host(move.node);
  const Millis outage(kOutages[move.a % kOutages.size()]);
  switch (move.act) {
    case Act::submit:
    case Act::submitAndWait: return clients_.submit(move);
    case Act::await: return clients_.await(move);
    case Act::finish:
      if (Process* const process = host.process()) process->workers().finish(move.a, outcomeOf(move.b));
      return;
    case Act::cancel:
    case Act::retry:
    case Act::ttl:
    case Act::stream: return clients_.change(move);
    case Act::advance:
      return cluster_.pass(world_.plan.isShared() ? Millis(kSteps[move.a % kSteps.size()]) : jumpOf(move.a));
    case Act::stop: return host.stop();
    case Act::fault: return planFault(move);
    case Act::cut: return host.cut(outage, move.b % 4 == 0 ? "nodes.beat" : "");
    case Act::outage:
      for (const auto& each : cluster_.hosts()) each->cut(outage, "");
      return;
    case Act::pause: return host.pause(outage, move.b % 4 == 0);
    case Act::crash: return host.crash();
    case Act::start:
      for (const auto& each : cluster_.hosts()) each->start();
      return;
    case Act::hostClock: return host.clock().stepHost(Millis(move.a % 2 == 0 ? 3'600'000 : -3'600'000));
    default: return actAtOne(move, host.running());
  }
}

void Simulation::actAtOne(const Move& move, Process& process) {
  Workers& workers = process.workers();
  switch (move.act) {
    case Act::resume: return process.resumeCalls();
    case Act::turn: return (void)process.dispatcher().runPassIfDue();
    case Act::sweep: return process.sweeper().sweepAll();
    case Act::startWorker: return (void)workers.endStart(move.b % 10 != 0);
    case Act::endWorker: return (void)workers.endStop();
    case Act::report:
      return workers.runs() > 0 && move.a % 2 == 0 ? workers.report(move.a, move.b) : remote_.report(move.a, move.b);
    case Act::remoteClaim: return remote_.claim(move.a, process.life().holder());
    case Act::remoteAsk: return remote_.ask(move.a);
    case Act::remoteFinish: return (void)remote_.finish(move.a, outcomeOf(move.b), process.reports());
    case Act::purge: return (void)process.jobs().purge(world_.endpoint(move.a).spec.id);
    case Act::deliver: return deliveries_.deliver(move);
    case Act::newLife: return process.beginLife();
    case Act::powerCut: return fault::Disk::instance().cutAt(1 + move.a % kReach);
    default: return;
  }
}

void Simulation::check() {
  for (const auto& host : cluster_.hosts()) {
    host->recover();
    world_.throwFinding();
    if (Process* const process = host->process()) process->check();
  }
  world_.throwFinding();
}

void Simulation::play(const std::vector<Move>& moves) {
  for (const Move& move : moves) {
    try {
      act(move);
    } catch (const StorageError& error) {
      world_.failed(error);
    }
    check();
  }
  runToRest();
  for (const auto& host : cluster_.hosts()) world_.rules.findings.played["faults"] += host->wire().faults();
}

}  // namespace jobq::model

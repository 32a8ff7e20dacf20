#include "nodes_simulation.h"

#include <array>
#include <string>

#include "finding.h"

namespace jobq::model {
namespace {

constexpr std::array kSteps{250, 250, 500, 1'000, 1'000, 2'000, 3'000, 5'000, 8'000, 12'000};
constexpr std::array kOutages{2'000, 6'000, 11'000, 12'000, 13'000, 14'000, 16'000, 20'000, 40'000};

}  // namespace

NodesSimulation::NodesSimulation(Twin twin, std::uint64_t seed) : world_(twin, seed), cluster_(world_, 1 + seed % 3) {}

// Plans a fault of one of the next calls. An operation without a name is any operation.
void NodesSimulation::planFault(const NodeMove& move) {
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

void NodesSimulation::act(const NodeMove& move) {
  NodeHost& host = cluster_.host(move.node);
  const Millis outage(kOutages[move.a % kOutages.size()]);
  switch (move.act) {
    case NodeAct::submit: return clients_.submit(move, false);
    case NodeAct::submitAndWait: return clients_.submit(move, true);
    case NodeAct::await: return clients_.await(move);
    case NodeAct::finish:
      if (NodeProcess* const process = host.process()) process->workers().finish(move.a, move.b % 4 != 0);
      return;
    case NodeAct::cancel:
    case NodeAct::retry:
    case NodeAct::ttl: return clients_.change(move);
    case NodeAct::advance: return cluster_.pass(Millis(kSteps[move.a % kSteps.size()]));
    case NodeAct::fault: return planFault(move);
    case NodeAct::cut: return host.cut(outage, move.b % 4 == 0 ? "nodes.beat" : "");
    case NodeAct::outage:
      for (const auto& each : cluster_.hosts()) each->cut(outage, "");
      return;
    case NodeAct::pause: return host.pause(outage, move.b % 4 == 0);
    case NodeAct::crash: return host.crash();
    case NodeAct::stop: return host.stop();
    case NodeAct::start:
      for (const auto& each : cluster_.hosts()) each->start();
      return;
    case NodeAct::hostClock: return host.clock().stepHost(Millis(move.a % 2 == 0 ? 3'600'000 : -3'600'000));
  }
}

void NodesSimulation::check() {
  cluster_.removeDead();
  for (const auto& host : cluster_.hosts()) {
    if (NodeProcess* const process = host->process()) process->check();
  }
  if (!world_.judge.findings.found.empty()) throw Finding(world_.judge.findings.found);
}

void NodesSimulation::play(const std::vector<NodeMove>& moves) {
  for (const NodeMove& move : moves) {
    act(move);
    check();
  }
  runToRest();
  for (const auto& host : cluster_.hosts()) world_.judge.findings.played.faults += host->wire().faults();
}

}  // namespace jobq::model

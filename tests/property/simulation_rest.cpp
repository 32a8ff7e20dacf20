// The end of a simulation, and the rules at rest.
#include <algorithm>

#include "simulation.h"

namespace jobq::model {

void Simulation::checkRules() const {
  if (!world_.rules.found().empty()) throw Finding(world_.rules.found());
}

void Simulation::checkWorkers() {
  checkRules();
  const LocalWorkers& workers = machine_.workers();
  for (const EndpointPtr& endpoint : world_.endpoints) {
    if (!endpoint->release) continue;
    const auto here = [&](const auto& place) { return place.first == endpoint->spec.id; };
    const auto busy = std::count_if(workers.running().begin(), workers.running().end(),
                                    [&](const Run& run) { return run.endpoint == endpoint->spec.id; });
    const auto idle = std::count_if(workers.idle().begin(), workers.idle().end(), here);
    const auto starting = std::count_if(workers.starting().begin(), workers.starting().end(), here);
    const WorkerCounts counts = machine_.process().pools.status(endpoint->spec.id).counts;
    const auto is = [](std::uint32_t said, std::ptrdiff_t really) {
      return static_cast<std::ptrdiff_t>(said) == really;
    };
    // A handler running past the grace after a stop is stuck, and another worker gets the slot.
    world_.rules.check(
        is(counts.running + counts.unhealthy, busy) && is(counts.idle, idle) && is(counts.initializing, starting),
        "workers of " + endpoint->spec.id + ": the pools count " + std::to_string(counts.running) + " running, " +
            std::to_string(counts.unhealthy) + " stuck, " + std::to_string(counts.idle) + " idle, " +
            std::to_string(counts.initializing) + " starting, there are " + std::to_string(busy) + ", " +
            std::to_string(idle) + ", " + std::to_string(starting));
    const std::ptrdiff_t most =
        std::ptrdiff_t{endpoint->spec.workersMax} + std::min(counts.unhealthy, endpoint->maxStuck());
    world_.rules.check(busy + idle + starting <= most, endpoint->spec.id + " has more workers than workersMax");
  }
}

// Lets every part do its next due work. Returns false if all parts can only wait.
bool Simulation::stepTowardsQuiet() {
  const Move good{Act::finish, 0, 1};
  LocalWorkers& workers = machine_.workers();
  Process& process = machine_.process();
  if (process.dispatcher.runPassIfDue()) return true;
  if (!workers.starting().empty()) return workers.finishStart({Act::start, 0, 1}), true;
  if (!workers.leaving().empty()) return workers.finishStop(), true;
  if (!workers.running().empty()) return workers.finish(0, good, process.reports), true;
  if (!remote_.running().empty()) return remote_.finish(0, good, process.reports), true;
  remote_.claim({Act::remoteClaim, 1, 0});
  return !remote_.running().empty();
}

// Advances the clock in small steps, with a sweep in each, until every back-off is over; then by a long step, until the
// end of leases granted while the clock was ahead.
void Simulation::runToRest() {
  machine_.endCrashes();
  machine_.process().inserts.storeAll();  // by the timer, in the first milliseconds
  constexpr Millis kStep{5'000};
  constexpr int kSteps = 12;
  constexpr int kMany = 10'000;
  for (const Millis far : {Millis(0), Millis(7'300'000)}) {
    world_.clock->advance(far);
    for (int step = 0; step < kSteps; ++step) {
      machine_.process().sweeper.sweepAll();
      int turns = 0;
      while (stepTowardsQuiet()) world_.rules.check(++turns < kMany, "it never comes to rest");
      if (far == Millis(0) && (step == 0 || step == kSteps - 1)) checkRest();
      world_.clock->advance(kStep);
    }
  }
  if (world_.plan.judged) world_.judge->inspect();
  checkAnswers();
  checkWorkers();
  checkQuiet();
  deliveries_.checkReplays();
}

// All parts can only wait, and time alone ends no job: no job is held without a holder, no job waits beside a free
// worker, and no caller waits for an ended job. (A remote job may wait for the end of its lease.)
void Simulation::checkRest() {
  checkRules();
  for (const JobKey& key : clients_.resume()) {
    const auto job = world_.storage().jobs().find(key);
    world_.rules.check(job && !terminal(job->state), "a caller waits for " + key.id + ", which has ended or is gone");
  }
  for (const JobKey& key : clients_.jobs()) {
    const auto job = world_.storage().jobs().find(key);
    if (!job || terminal(job->state) || key.endpoint == "remote") continue;
    world_.rules.check(job->state != JobState::inProgress, key.id + " is IN_PROGRESS, and nobody runs it");
    for (const auto& [endpoint, worker] : machine_.workers().idle()) {
      world_.rules.check(endpoint != key.endpoint, key.id + " waits although " + worker + " is idle");
    }
  }
}

// A low-priority job starts no worker (core/http/API.md, "Policy"), so the job may wait on an endpoint without minimum
// workers.
void Simulation::checkQuiet() {
  for (const JobKey& key : clients_.jobs()) {
    const auto job = world_.storage().jobs().find(key);
    if (!job || terminal(job->state)) continue;
    const bool mayWait = job->lowPriority && key.endpoint == "scaled";
    world_.rules.check(job->state == JobState::inQueue && mayWait,
                       key.id + " is " + std::string(nameOf(job->state)) + " for ever at " + key.endpoint);
  }
}

}  // namespace jobq::model

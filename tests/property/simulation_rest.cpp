// The end of a simulation, and the rules at rest.
#include <algorithm>

#include "simulation_node.h"

namespace jobq::model {

void Simulation::checkWorkers() const {
  if (!found_.empty()) throw Finding(found_);
  for (const EndpointPtr& endpoint : endpoints_) {
    if (!endpoint->release) continue;
    const auto here = [&](const auto& place) { return place.first == endpoint->spec.id; };
    const auto busy = std::count_if(workshop_->running.begin(), workshop_->running.end(),
                                    [&](const Run& run) { return run.endpoint == endpoint->spec.id; });
    const auto idle = std::count_if(workshop_->idle.begin(), workshop_->idle.end(), here);
    const auto starting = std::count_if(workshop_->starting.begin(), workshop_->starting.end(), here);
    const WorkerCounts counts = deps_->pools.status(endpoint->spec.id).counts;
    const auto is = [](std::uint32_t said, std::ptrdiff_t really) {
      return static_cast<std::ptrdiff_t>(said) == really;
    };
    // A handler running past its grace after a stop is stuck, and its slot goes to another worker.
    check(is(counts.running + counts.unhealthy, busy) && is(counts.idle, idle) && is(counts.initializing, starting),
          "workers of " + endpoint->spec.id + ": the pools count " + std::to_string(counts.running) + " running, " +
              std::to_string(counts.unhealthy) + " stuck, " + std::to_string(counts.idle) + " idle, " +
              std::to_string(counts.initializing) + " starting, there are " + std::to_string(busy) + ", " +
              std::to_string(idle) + ", " + std::to_string(starting));
    const std::ptrdiff_t most =
        std::ptrdiff_t{endpoint->spec.workersMax} + std::min(counts.unhealthy, endpoint->maxStuck());
    check(busy + idle + starting <= most, endpoint->spec.id + " has more workers than workersMax");
  }
}

// Lets every part do its next due work. Returns false if all parts can only wait.
bool Simulation::stepTowardsQuiet() {
  const Move good{Act::finish, 0, 1};
  if (deps_->dispatcher.runPassIfDue()) return true;
  if (!workshop_->starting.empty()) return act({Act::start, 0, 1}), true;
  if (!workshop_->leaving.empty()) return act({Act::leave, 0, 1}), true;
  if (!workshop_->running.empty()) return finishLocal(0, good), true;
  if (!remote_.empty()) return finishRemote(0, good), true;
  remoteClaim({Act::remoteClaim, 1, 0});
  return !remote_.empty();
}

// Advances the clock in small steps, with a sweep in each, until every back-off is over; then by a long step, until the
// end of leases granted while the clock was ahead.
void Simulation::settle() {
  endCrashes();
  constexpr Millis kStep{5'000};
  constexpr int kSteps = 12;
  constexpr int kMany = 10'000;
  for (const Millis far : {Millis(0), Millis(7'300'000)}) {
    clock_->advance(far);
    for (int step = 0; step < kSteps; ++step) {
      deps_->sweeper.sweepAll();
      int turns = 0;
      while (stepTowardsQuiet()) check(++turns < kMany, "it never comes to rest");
      if (far == Millis(0) && (step == 0 || step == kSteps - 1)) checkRest();
      clock_->advance(kStep);
    }
  }
  if (plan_.judged) judge_->inspect();
  if (!judge_->disagreement().empty()) throw Disagreement(judge_->disagreement());
  checkWorkers();
  checkQuiet();
  checkDeliveries();
}

// All parts can only wait, and the passed time ends no job by itself: no job is held without a holder, and no job waits
// beside a free worker. (A remote job may wait for the end of its lease.)
void Simulation::checkRest() {
  Storage& storage = plan_.judged ? *judge_ : judge_->real();
  for (const JobKey& key : jobs_) {
    const auto job = storage.jobs().find(key);
    if (!job || terminal(job->state) || key.endpoint == "remote") continue;
    check(job->state != JobState::inProgress, key.id + " is IN_PROGRESS, and nobody runs it");
    for (const auto& [endpoint, worker] : workshop_->idle) {
      check(endpoint != key.endpoint, key.id + " waits although " + worker + " is idle");
    }
  }
}

// A low-priority job starts no worker (core/http/API.md, "Policy"), so the job may wait on an endpoint without minimum
// workers.
void Simulation::checkQuiet() {
  Storage& storage = plan_.judged ? *judge_ : judge_->real();
  for (const JobKey& key : jobs_) {
    const auto job = storage.jobs().find(key);
    if (!job || terminal(job->state)) continue;
    const bool mayWait = job->lowPriority && key.endpoint == "scaled";
    check(job->state == JobState::inQueue && mayWait,
          key.id + " is " + std::string(nameOf(job->state)) + " for ever at " + key.endpoint);
  }
}

}  // namespace jobq::model

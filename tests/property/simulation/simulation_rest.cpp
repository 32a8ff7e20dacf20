// The end of a simulation, and the rules at rest.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "jobq/transitions.h"
#include "simulation.h"

namespace jobq::model {
namespace {

constexpr Millis kRound{1'000};
/// Pause between the rounds of one node, which outlast every back-off together.
constexpr Millis kPause{5'000};
constexpr int kRounds = 12;
/// Time to the end of leases granted while the clock was ahead.
constexpr Millis kAhead{7'300'000};
constexpr int kManyTurns = 10'000;
/// Time in which nodes notice the return of the storage, and follow their runs.
constexpr Millis kNoticed{8'000};
/// Time for a question of a node about its runs.
constexpr Millis kFollowed{2'000};
/// Seconds without work after which the nodes are at rest: a low-priority job waits for an idle worker.
constexpr int kQuietRounds = 8;
/// Longest time to rest: leases end, workers start again after 30 s at most, and retries follow.
constexpr int kMostSeconds = 240;

/// A low-priority job starts no worker (core/http/API.md, "Policy"), so the job may wait at an endpoint without minimum
/// workers.
bool mayWait(const Job& job) { return job.state == JobState::inQueue && job.lowPriority && job.endpoint == "scaled"; }

}  // namespace

// Each run with an ended attempt in the storage is stopped after another question about the runs.
void Simulation::checkStops() {
  std::map<const Host*, std::vector<LeaseRef>> ended;
  for (const auto& host : cluster_.hosts()) {
    const std::vector<LeaseRef> runs = host->running().workers().unstopped();
    const std::vector<LeaseState> states = world_.store->leases().states(runs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (states[i] != LeaseState::held) ended[host.get()].push_back(runs[i]);
    }
  }
  cluster_.pass(kFollowed);
  for (const auto& host : cluster_.hosts()) {
    for (const LeaseRef& run : host->running().workers().unstopped()) {
      if (std::ranges::count(ended[host.get()], run) == 0) continue;
      world_.rules.findings.note("not stopped: " + run.job + " at " + host->name());
    }
  }
}

// Returns true if no job waits or runs, except for jobs that may wait.
bool Simulation::isAtRest() {
  for (const auto& host : cluster_.hosts()) {
    if (host->running().workers().runs() > 0) return false;
  }
  return std::ranges::all_of(clients_.jobs(), [&](const JobKey& key) {
    const auto job = world_.store->jobs().find(key);
    return !job || terminal(job->state) || mayWait(*job);
  });
}

// Lets every part of one node do its next due work. Returns false if all parts can only wait.
bool Simulation::stepTowardsQuiet() {
  Process& process = cluster_.host(0).running();
  Workers& workers = process.workers();
  if (process.dispatcher().runPassIfDue() || workers.endStart(true) || workers.endStop()) return true;
  if (workers.runs() > 0) return workers.finish(0, outcomeOf(1)), true;
  if (remote_.finish(0, outcomeOf(1), process.reports())) return true;
  remote_.claim(1, process.life().holder());
  return remote_.finish(0, outcomeOf(1), process.reports());
}

void Simulation::runToQuiet() {
  cluster_.host(0).running().sweeper().sweepAll();
  for (int turns = 0; stepTowardsQuiet(); ++turns) {
    if (turns == kManyTurns) throw Finding("it never comes to rest");
  }
  check();
}

// All parts of one node can only wait, and time alone ends no job. A remote job may wait for the end of its lease.
void Simulation::checkQuiet() {
  Process& process = cluster_.host(0).running();
  process.resumeCalls();
  checkCallers();
  for (const JobKey& key : clients_.jobs()) {
    const auto job = world_.storage().jobs().find(key);
    if (!job || terminal(job->state) || key.endpoint == kRemote) continue;
    if (job->state == JobState::inProgress) {
      world_.rules.findings.note("stuck: " + key.id + " is IN_PROGRESS, and no worker runs the job");
    }
    if (process.workers().count(key.endpoint).idle > 0) {
      world_.rules.findings.note("stuck: " + key.id + " waits although a worker is idle");
    }
  }
  check();
}

void Simulation::runToRest() {
  world_.isCalm = true;
  for (const auto& host : cluster_.hosts()) host->heal();
  if (world_.plan.isShared()) {
    cluster_.pass(kNoticed);
    checkStops();
    check();
    int quietRounds = 0;
    for (int second = 0; second < kMostSeconds && quietRounds < kQuietRounds; ++second) {
      quietRounds = isAtRest() ? quietRounds + 1 : 0;
      finishAll();
      cluster_.pass(kRound);
      check();
    }
    checkCounts();
  } else {
    for (const Millis far : {Millis(0), kAhead}) {
      cluster_.pass(far);
      for (int step = 0; step < kRounds; ++step) {
        runToQuiet();
        if (far == Millis(0) && (step == 0 || step == kRounds - 1)) checkQuiet();
        cluster_.pass(kPause);
      }
    }
    world_.inspect();
    deliveries_.checkReplays();
  }
  checkRest();
  check();
}

void Simulation::finishAll() {
  for (const auto& host : cluster_.hosts()) {
    Workers& workers = host->running().workers();
    for (std::size_t i = workers.runs(); i > 0; --i) workers.finish(i - 1, outcomeOf(1));
  }
}

void Simulation::checkRest() {
  for (const JobKey& key : clients_.jobs()) {
    const std::optional<Job> job = world_.storage().jobs().find(key);
    if (world_.plan.isShared()) world_.rules.jobs.checkEnd(key, job);
    if (!job || terminal(job->state) || mayWait(*job)) continue;
    world_.rules.findings.note("stuck: " + key.id + " is " + std::string(nameOf(job->state)) + " for ever at " +
                               key.endpoint);
  }
  checkCallers();
}

void Simulation::checkCallers() {
  for (const auto& host : cluster_.hosts()) {
    for (const JobKey& key : host->running().awaited()) {
      const auto job = world_.storage().jobs().find(key);
      if (job && !terminal(job->state)) continue;
      world_.rules.findings.note("no answer: a caller at " + host->name() + " waits for " + key.id +
                                 ", which has ended or is gone");
    }
  }
}

// The counts of all nodes together.
void Simulation::checkCounts() {
  for (const EndpointPtr& endpoint : world_.endpoints) {
    const EndpointId& id = endpoint->spec.id;
    WorkerCounts all;
    for (const auto& host : cluster_.hosts()) all += host->running().workers().count(id);
    if (all.idle + all.initializing + all.running > endpoint->spec.workersMax) {
      world_.rules.findings.note("too many workers: " + id);
    }
    const std::uint64_t completed = world_.storage().jobs().counts(id).completed;
    if (completed != world_.rules.jobs.completions(id)) {
      world_.rules.findings.note("counted twice: " + id + " has " + std::to_string(completed) +
                                 " completed jobs instead of " + std::to_string(world_.rules.jobs.completions(id)));
    }
  }
}

}  // namespace jobq::model

// The end of a simulation of nodes, and the rules at rest.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "jobq/transitions.h"
#include "nodes_simulation.h"

namespace jobq::model {
namespace {

constexpr Millis kRound{1'000};
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
void NodesSimulation::checkStops() {
  std::map<const NodeHost*, std::vector<LeaseRef>> ended;
  for (const auto& host : cluster_.hosts()) {
    const std::vector<LeaseRef> runs = host->process()->workers().unstopped();
    const std::vector<LeaseState> states = world_.store->leases().states(runs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (states[i] != LeaseState::held) ended[host.get()].push_back(runs[i]);
    }
  }
  cluster_.pass(kFollowed);
  for (const auto& host : cluster_.hosts()) {
    for (const LeaseRef& run : host->process()->workers().unstopped()) {
      if (std::ranges::count(ended[host.get()], run) == 0) continue;
      world_.judge.findings.note("not stopped: " + run.job + " at " + host->name());
    }
  }
}

// Returns true if no job waits or runs, and no caller waits, except for jobs that may wait.
bool NodesSimulation::isQuiet() {
  for (const auto& host : cluster_.hosts()) {
    if (host->process()->workers().runs() > 0) return false;
  }
  return std::ranges::all_of(clients_.jobs(), [&](const JobKey& key) {
    const auto job = world_.store->jobs().find(key);
    return !job || terminal(job->state) || mayWait(*job);
  });
}

void NodesSimulation::runToRest() {
  world_.isCalm = true;
  for (const auto& host : cluster_.hosts()) {
    host->heal();
    host->start();
  }
  cluster_.pass(kNoticed);
  checkStops();
  check();
  int quietRounds = 0;
  for (int second = 0; second < kMostSeconds && quietRounds < kQuietRounds; ++second) {
    quietRounds = isQuiet() ? quietRounds + 1 : 0;
    for (const auto& host : cluster_.hosts()) {
      NodeWorkers& workers = host->process()->workers();
      for (std::size_t i = workers.runs(); i > 0; --i) workers.finish(i - 1, true);
    }
    cluster_.pass(kRound);
    check();
  }
  checkRest();
  check();
}

void NodesSimulation::checkRest() {
  Storage& store = *world_.storage;
  for (const JobKey& key : clients_.jobs()) {
    const std::optional<Job> job = store.jobs().find(key);
    world_.judge.jobs.checkEnd(key, job);
    if (!job || terminal(job->state) || mayWait(*job)) continue;
    world_.judge.findings.note("stuck: " + key.id + " is " + std::string(nameOf(job->state)) + " for ever at " +
                               key.endpoint);
  }
  for (const auto& host : cluster_.hosts()) {
    for (const JobKey& key : host->process()->awaited()) {
      const std::optional<Job> job = store.jobs().find(key);
      if (!job || !mayWait(*job)) {
        world_.judge.findings.note("no answer: a caller at " + host->name() + " waits for " + key.id + " for ever");
      }
    }
  }
  for (const EndpointPtr& endpoint : world_.endpoints) {
    const EndpointId& id = endpoint->spec.id;
    std::size_t workers = 0;
    for (const auto& host : cluster_.hosts()) workers += host->process()->workers().workers(id);
    if (workers > endpoint->spec.workersMax) world_.judge.findings.note("too many workers: " + id);
    const std::uint64_t completed = store.jobs().counts(id).completed;
    if (completed != world_.judge.jobs.completions(id)) {
      world_.judge.findings.note("counted twice: " + id + " has " + std::to_string(completed) +
                                 " completed jobs instead of " + std::to_string(world_.judge.jobs.completions(id)));
    }
  }
}

}  // namespace jobq::model

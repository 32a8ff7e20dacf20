#include "nodes_workers.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace jobq::model {
namespace {

constexpr std::uint32_t kObedience = 18;  // most steps until a handler obeys its stop, less than 5 s
constexpr Millis kMoment{250};

/// Marks a run during a call of the storage, in which time may pass.
class Busy {
 public:
  explicit Busy(bool& mark) : mark_(mark) { mark_ = true; }
  ~Busy() { mark_ = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  bool& mark_;
};

}  // namespace

NodeWorkers::~NodeWorkers() {
  for (Run& run : runs_) endHandler(run);
}

void NodeWorkers::startWorker(const EndpointPtr& endpoint, const ReleasePtr&, const WorkerId& worker,
                              WorkerEvents& to) {
  events_ = &to;
  starting_.push_back({endpoint->spec.id, worker});
}

void NodeWorkers::assign(ClaimedJob job) {
  if (idle_.erase({job.endpoint, job.worker}) != 1)
    deps_.world.judge.findings.note(job.worker + " got a job and is not free");
  Run run;
  run.lease = job.lease;
  run.place = {job.endpoint, job.worker};
  run.deadline = deps_.clock.now() + job.runsFor;
  run.obeysAfter = kMoment * deps_.world.chance(kObedience);
  run.entry = std::make_unique<RunningJobs::Entry>(deps_.running, job.lease);
  run.token = run.entry->token();
  if (!run.token.stop_requested()) run.handler = deps_.world.judge.handlers.begins(deps_.node, run.lease);
  runs_.push_back(std::move(run));
}

void NodeWorkers::stopWorker(const WorkerId& worker) {
  const auto found = std::ranges::find(idle_, worker, &Place::second);
  if (found == idle_.end()) return deps_.world.judge.findings.note(worker + " was stopped and is not free");
  leaving_.push_back(*found);
  idle_.erase(found);
}

void NodeWorkers::stepWorkers() {
  while (!starting_.empty()) {
    const auto [endpoint, worker] = starting_.front();
    starting_.pop_front();
    if (!deps_.world.isCalm && deps_.world.chance(10) == 0) {
      events_->workerGone(endpoint, worker, WorkerFailure{"it does not start today"});
      continue;
    }
    idle_.insert({endpoint, worker});
    events_->workerReady(endpoint, worker);
  }
  while (!leaving_.empty()) {
    const auto [endpoint, worker] = leaving_.front();
    leaving_.pop_front();
    events_->workerGone(endpoint, worker, {});
  }
}

void NodeWorkers::step() {
  stepWorkers();
  for (auto at = runs_.begin(); at != runs_.end();) {
    const bool isOver = !at->isBusy && stepRun(*at);
    const auto run = at++;
    if (isOver) endRun(run);
  }
}

// Returns true if the run is over.
bool NodeWorkers::stepRun(Run& run) {
  const Busy busy(run.isBusy);
  if (run.outcome) return report(run);
  const Instant now = deps_.clock.now();
  if (!run.hasNoticedDeadline && now >= run.deadline) {
    run.hasNoticedDeadline = true;
    try {
      deps_.sweeper.endOverdue();
    } catch (const StorageError&) {  // the next sweep ends the job
    }
  }
  if (!run.token.stop_requested()) return false;
  if (!run.handler) return true;  // stopped before its start
  if (deps_.world.flaws.forgetsStoppedRuns) run.entry.reset();
  if (!run.stoppedAt) run.stoppedAt = now;
  if (now - *run.stoppedAt < run.obeysAfter) return false;
  return handlerReturns(run, Failed{"stopped", ""});
}

void NodeWorkers::endHandler(Run& run) {
  if (run.handler) deps_.world.judge.handlers.ends(*std::exchange(run.handler, std::nullopt));
}

// Returns true if the run is over.
bool NodeWorkers::handlerReturns(Run& run, Outcome outcome) {
  endHandler(run);
  if (!run.entry || !run.entry->beginReport()) return true;
  run.outcome = std::move(outcome);
  return report(run);
}

// Returns true if the outcome is stored or stale. Past the deadline, overdue jobs are ended first.
bool NodeWorkers::report(Run& run) {
  try {
    if (deps_.clock.now() >= run.deadline) deps_.sweeper.endOverdue();
    (void)deps_.reports.finish(run.lease, *run.outcome, false);
    return true;
  } catch (const StorageError&) {
    return false;
  }
}

void NodeWorkers::endRun(RunPlace run) {
  const Place place = run->place;
  runs_.erase(run);
  idle_.insert(place);
  events_->workerReady(place.first, place.second);
}

void NodeWorkers::finish(std::size_t which, bool succeeds) {
  if (runs_.empty()) return;
  const auto run = std::next(runs_.begin(), static_cast<std::ptrdiff_t>(which % runs_.size()));
  if (!run->handler || run->isBusy) return;
  bool isOver = false;
  {
    const Busy busy(run->isBusy);
    Outcome outcome = Failed{"no", ""};
    if (succeeds) outcome = Completed{std::to_string(run->lease.attempt)};
    isOver = handlerReturns(*run, std::move(outcome));
  }
  if (isOver) endRun(run);
}

void NodeWorkers::stopAll() {
  for (Run& run : runs_) {
    deps_.running.stop(run.lease);
    endHandler(run);
    const Busy busy(run.isBusy);
    try {
      deps_.reports.giveBack({&run.lease, 1}, false);
    } catch (const StorageError&) {  // the job counts as lost when the life ends
    }
  }
}

std::vector<LeaseRef> NodeWorkers::unstopped() const {
  std::vector<LeaseRef> leases;
  for (const Run& run : runs_) {
    if (run.handler && !run.token.stop_requested()) leases.push_back(run.lease);
  }
  return leases;
}

std::size_t NodeWorkers::workers(const EndpointId& endpoint) const {
  const auto here = [&](const Place& place) { return place.first == endpoint; };
  return static_cast<std::size_t>(
      std::ranges::count_if(idle_, here) + std::ranges::count_if(starting_, here) +
      std::ranges::count_if(runs_, [&](const Run& run) { return run.place.first == endpoint; }));
}

// A handler past its grace after a stop is stuck.
void NodeWorkers::check(const EndpointId& endpoint, const WorkerCounts& counts) const {
  const std::size_t counted = counts.idle + counts.initializing + counts.running + counts.unhealthy;
  const std::size_t there = workers(endpoint);
  if (counted == there) return;
  deps_.world.judge.findings.note("workers of " + endpoint + " at " + deps_.node + ": the pool counts " +
                                  std::to_string(counted) + ", there are " + std::to_string(there));
}

}  // namespace jobq::model

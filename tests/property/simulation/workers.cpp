#include "workers.h"

#include <algorithm>
#include <iterator>
#include <new>
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

void RunProgress::report(const LeaseRef& lease, std::uint32_t number, Storage& storage) {
  const std::string words = std::to_string(number);
  if (number % 3 == 0) {
    (void)storage.leases().progress(lease, words);
  } else if (number % 3 == 1) {
    if (storage.chunks().append(lease, chunks_, {Chunk{words, "", false}}) == ReportResult::accepted) ++chunks_;
  } else {
    const LogLine line{{}, LogLevel::information, words};
    if (storage.chunks().appendLog(lease, lines_, {line}) == ReportResult::accepted) ++lines_;
  }
}

Outcome outcomeOf(std::uint32_t number) {
  if (number % 4 == 0) return Failed{"no", ""};
  return Completed{std::to_string(number)};
}

Workers::~Workers() {
  for (Run& run : runs_) endHandler(run);
}

void Workers::startWorker(const EndpointPtr& endpoint, const ReleasePtr&, const WorkerId& worker, WorkerEvents& to) {
  events_ = &to;
  starting_.push_back({endpoint->spec.id, worker});
}

void Workers::assignUnstored(ClaimedJob job, const std::shared_ptr<DeferredInsert>& insert) {
  if (!deps_.world.plan.isShared() && deps_.world.chance(40) == 0) throw std::bad_alloc();
  const Place place{job.endpoint, job.worker};
  const bool isReporting =
      std::ranges::any_of(runs_, [&](const Run& run) { return run.outcome && run.isBusy && run.place() == place; });
  if (idle_.erase(place) == 0 && !isReporting) {
    deps_.world.rules.findings.note(job.worker + " got a job and is not free");
  }
  const std::uint64_t lines = job.logLines;
  Run run{.job = std::move(job), .insert = insert, .progress = RunProgress(lines)};
  run.deadline = deps_.clock.now() + run.job.runsFor;
  run.entry = std::make_unique<RunningJobs::Entry>(deps_.running, run.job.lease, insert);
  run.token = run.entry->token();
  if (!run.token.stop_requested()) run.handler = deps_.world.rules.handlers.begins(deps_.node, run.job.lease);
  runs_.push_back(std::move(run));
}

void Workers::stopWorker(const WorkerId& worker) {
  const auto found = std::ranges::find(idle_, worker, &Place::second);
  if (found == idle_.end()) return deps_.world.rules.findings.note(worker + " was stopped and is not free");
  leaving_.push_back(*found);
  idle_.erase(found);
}

bool Workers::endStart(bool succeeds) {
  if (starting_.empty()) return false;
  const auto [endpoint, worker] = starting_.front();
  starting_.pop_front();
  if (succeeds) {
    idle_.insert({endpoint, worker});
    events_->workerReady(endpoint, worker);
  } else {
    events_->workerGone(endpoint, worker, WorkerFailure{"it does not start today"});
  }
  return true;
}

bool Workers::endStop() {
  if (leaving_.empty()) return false;
  const auto [endpoint, worker] = leaving_.front();
  leaving_.pop_front();
  events_->workerGone(endpoint, worker, {});
  return true;
}

void Workers::step() {
  while (!starting_.empty()) endStart(deps_.world.isCalm || deps_.world.chance(10) != 0);
  while (endStop()) continue;
  for (auto at = runs_.begin(); at != runs_.end();) {
    const bool isOver = !at->isBusy && stepRun(*at);
    const auto run = at++;
    if (isOver) endRun(run);
  }
}

// Returns true if the run is over.
bool Workers::stepRun(Run& run) {
  const Busy busy(run.isBusy);
  if (run.outcome) return reportEnd(run);
  const Instant now = deps_.clock.now();
  if (!run.hasNoticedDeadline && now >= run.deadline) {
    run.hasNoticedDeadline = true;
    try {
      deps_.sweeper.endOverdue();
    } catch (const StorageError&) {  // the next sweep ends the job
    }
  }
  if (!run.token.stop_requested()) return false;
  if (!run.handler) {  // stopped before its start
    if (run.insert) {
      run.insert->discard();
      if (run.insert->state() != DeferredInsert::State::stored) run.end = FinishedRun{};
    }
    return true;
  }
  if (deps_.world.plan.twin == Twin::earlyRelease) run.entry.reset();
  if (!run.obeysAt) run.obeysAt = now + kMoment * deps_.world.chance(kObedience);
  if (now < *run.obeysAt) return false;
  return handlerReturns(run, Failed{"stopped", ""});
}

void Workers::endHandler(Run& run) {
  if (run.handler) deps_.world.rules.handlers.ends(*std::exchange(run.handler, std::nullopt));
}

// Returns true if the run is over.
bool Workers::handlerReturns(Run& run, Outcome outcome) {
  endHandler(run);
  if (!run.entry || !run.entry->beginReport()) return true;
  run.outcome = std::move(outcome);
  return reportEnd(run);
}

// Returns true if the outcome is stored or stale. Past the deadline, overdue jobs are ended first.
bool Workers::reportEnd(Run& run) {
  try {
    if (deps_.clock.now() >= run.deadline) {
      if (run.insert) run.insert->store();
      deps_.sweeper.endOverdue();
    }
    run.end = deps_.reports.finishAndClaim(run.job, RunReports::endOf(run.job.lease, *run.outcome), run.insert.get());
    return true;
  } catch (const StorageError& error) {
    deps_.world.failed(error);
    return false;
  }
}

// The report may have given the worker its next job. The worker is ready before its caller has the answer.
void Workers::endRun(RunPlace place) {
  const Run run = std::move(*place);
  runs_.erase(place);
  if (std::ranges::find(runs_, run.place(), &Run::place) == runs_.end()) idle_.insert(run.place());
  if (!run.end || !run.end->hasNext) events_->workerReady(run.job.endpoint, run.job.worker);
  const bool isAccepted = run.end && run.end->result == ReportResult::accepted;
  if (isAccepted) deps_.reports.announceEnd(run.job, deps_.world.chance(2) == 0);
}

Workers::RunPlace Workers::runAt(std::size_t which) {
  if (runs_.empty()) return runs_.end();
  return std::next(runs_.begin(), static_cast<std::ptrdiff_t>(which % runs_.size()));
}

void Workers::report(std::size_t which, std::uint32_t number) {
  const auto run = runAt(which);
  if (run == runs_.end()) return;
  if (run->insert) run->insert->store();
  run->progress.report(run->job.lease, number, deps_.world.storage());
}

void Workers::finish(std::size_t which, Outcome outcome) {
  const auto run = runAt(which);
  if (run == runs_.end() || run->isBusy) return;
  bool isOver = false;
  if (run->handler) {
    const Busy busy(run->isBusy);
    isOver = handlerReturns(*run, std::move(outcome));
  } else {
    isOver = stepRun(*run);
  }
  if (isOver) endRun(run);
}

void Workers::stopAll() {
  for (Run& run : runs_) {
    deps_.running.stop(run.job.lease);
    endHandler(run);
    const Busy busy(run.isBusy);
    try {
      deps_.reports.giveBack({&run.job.lease, 1}, false);
    } catch (const StorageError& error) {  // the job counts as lost when the life ends
      deps_.world.failed(error);
    }
  }
}

std::vector<LeaseRef> Workers::unstopped() const {
  std::vector<LeaseRef> leases;
  for (const Run& run : runs_) {
    if (run.handler && !run.token.stop_requested()) leases.push_back(run.job.lease);
  }
  return leases;
}

WorkerCounts Workers::count(const EndpointId& endpoint) const {
  const auto of = [](std::ptrdiff_t workers) { return static_cast<std::uint32_t>(workers); };
  WorkerCounts counts;
  counts.idle = of(std::ranges::count(idle_, endpoint, &Place::first));
  counts.initializing = of(std::ranges::count(starting_, endpoint, &Place::first));
  counts.running = of(std::ranges::count_if(runs_, [&](const Run& run) { return run.job.endpoint == endpoint; }));
  return counts;
}

// A handler past its grace after a stop is stuck, and another worker gets the slot. At several nodes the workers of a
// claim without an answer are reserved, and an endpoint has its part of workersMax.
void Workers::check(const Endpoint& endpoint, const WorkerCounts& counted) const {
  const bool isShared = deps_.world.plan.isShared();
  const auto words = [isShared](const WorkerCounts& counts) {
    const std::uint32_t busy = counts.running + counts.unhealthy;
    if (isShared) return std::to_string(busy + counts.idle + counts.initializing);
    return std::to_string(busy) + " busy, " + std::to_string(counts.idle) + " idle, " +
           std::to_string(counts.initializing) + " starting";
  };
  const WorkerCounts real = count(endpoint.spec.id);
  if (words(counted) != words(real)) {
    deps_.world.rules.findings.note("workers of " + endpoint.spec.id + " at " + deps_.node + ": the pool counts " +
                                    words(counted) + ", there are " + words(real));
  }
  const std::uint32_t most = endpoint.spec.workersMax + std::min(counted.unhealthy, endpoint.maxStuck());
  if (!isShared && real.running + real.idle + real.initializing > most) {
    deps_.world.rules.findings.note(endpoint.spec.id + " has more workers than workersMax");
  }
}

}  // namespace jobq::model

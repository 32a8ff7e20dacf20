#include "simulation_workers.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

namespace jobq::model {
namespace {

void reportOn(Run& run, const Move& move, Storage& storage) {
  const std::string number = std::to_string(move.b);
  if (run.insert) run.insert->store();
  if (move.b % 3 == 0) {
    (void)storage.leases().progress(run.lease, number);
  } else if (move.b % 3 == 1) {
    const ReportResult result = storage.chunks().append(run.lease, run.chunks, {Chunk{number, "", false}});
    if (result == ReportResult::accepted) ++run.chunks;
  } else {
    const LogLine line{{}, LogLevel::information, number};
    if (storage.chunks().appendLog(run.lease, run.lines, {line}) == ReportResult::accepted) ++run.lines;
  }
}

bool succeeds(const Move& move) { return move.b % 4 != 0; }

Outcome outcomeOf(const Move& move) {
  if (succeeds(move)) return Completed{std::to_string(move.b)};
  return Failed{"no", ""};
}

}  // namespace

void LocalWorkers::startWorker(const EndpointPtr& endpoint, const ReleasePtr&, const WorkerId& worker,
                               WorkerEvents& to) {
  events_ = &to;
  starting_.push_back({endpoint->spec.id, worker});
}

void LocalWorkers::assignUnstored(ClaimedJob job, const std::shared_ptr<DeferredInsert>& insert) {
  if (world_.random() % 40 == 0) throw std::bad_alloc();
  world_.rules.check(idle_.erase({job.endpoint, job.worker}) == 1,
                     job.lease.job + " was given to a worker that is not free");
  Run run{job.lease, job.endpoint, job.worker, job.webhook, job.logLines, 0, insert};
  world_.rules.begins(run);
  running_.push_back(std::move(run));
}

void LocalWorkers::stopWorker(const WorkerId& worker) {
  const auto found =
      std::find_if(idle_.begin(), idle_.end(), [&](const Place& place) { return place.second == worker; });
  world_.rules.check(found != idle_.end(), "a worker was stopped that is not free");
  leaving_.push_back(*found);
  idle_.erase(found);
}

void LocalWorkers::finishStart(const Move& move) {
  if (starting_.empty()) return;
  const auto [endpoint, worker] = starting_.front();
  starting_.pop_front();
  if (move.b % 10 == 0) return events_->workerGone(endpoint, worker, WorkerFailure{"it does not start today"});
  idle_.insert({endpoint, worker});
  events_->workerReady(endpoint, worker);
}

void LocalWorkers::finishStop() {
  if (leaving_.empty()) return;
  const auto [endpoint, worker] = leaving_.front();
  leaving_.pop_front();
  events_->workerGone(endpoint, worker, {});
}

void LocalWorkers::report(const Move& move) { reportOn(running_[move.a % running_.size()], move, world_.storage()); }

void LocalWorkers::finish(std::size_t which, const Move& move, RunReports& reports) {
  const Run run = running_[which];
  ClaimedJob job;
  job.lease = run.lease;
  job.endpoint = run.endpoint;
  job.worker = run.worker;
  job.webhook = run.webhook;
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(which));
  idle_.insert({run.endpoint, run.worker});  // the report may give the worker its next job
  const FinishedRun end = reports.finishAndClaim(job, RunReports::endOf(job.lease, outcomeOf(move)), run.insert.get());
  if (end.result == ReportResult::accepted) world_.rules.accepted(run, succeeds(move));
  if (!end.hasNext) events_->workerReady(run.endpoint, run.worker);
  if (end.result == ReportResult::accepted) reports.announceEnd(job, move.b % 2 == 0);
}

void RemoteWorkers::claim(const Move& move) {
  std::vector<WorkerId> workers;
  for (std::uint32_t i = 0; i <= move.a % 2; ++i) workers.push_back("remote" + std::to_string(i));
  const std::vector wants{ClaimWant{"remote", workers}};
  const std::vector<ClaimedJob> claimed = world_.storage().leases().claim(wants, world_.holder, ++lastClaim_).jobs;
  // A loss of power may undo a claim, and a remote worker survives the loss of power: the worker learns of its claim
  // after a synced step only.
  world_.storage().check();
  for (const ClaimedJob& job : claimed) {
    Run run{job.lease, job.endpoint, "", job.webhook, job.logLines};
    world_.rules.begins(run);
    running_.push_back(std::move(run));
  }
}

void RemoteWorkers::ask(const Move& move) {
  if (running_.empty()) return;
  (void)world_.storage().leases().states(std::vector{running_[move.a % running_.size()].lease});
}

void RemoteWorkers::report(const Move& move) {
  if (!running_.empty()) reportOn(running_[move.a % running_.size()], move, world_.storage());
}

void RemoteWorkers::finish(std::size_t which, const Move& move, RunReports& reports) {
  const Run run = running_[which];
  const ReportResult fenced = reports.finish(run.lease, outcomeOf(move), !run.webhook.empty());
  if (fenced == ReportResult::accepted) world_.rules.accepted(run, succeeds(move));
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(which));
}

}  // namespace jobq::model

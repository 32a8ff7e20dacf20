#include "core/workers/remote_workers.h"

#include <algorithm>
#include <exception>
#include <iterator>

#include "core/jobs/queue_signal.h"
#include "core/jobs/run_reports.h"
#include "core/workers/worker_pools.h"

namespace jobq {
namespace {

constexpr Millis kForgotten{60'000};  ///< without any sign for so long, a worker is forgotten
constexpr Millis kStopLife{600'000};  ///< a stop is repeated for so long
constexpr std::size_t kMostWorkers = 10'000;

WorkerId workerOf(std::string_view place) { return WorkerId(place.substr(0, place.find(':'))); }

}  // namespace

/// A connection with requests of a worker.
class RemoteWorkers::Connected final : public ConnectionOwner {
 public:
  Connected(RemoteWorkers& workers, RemoteWorkerKey key) : workers_(workers), key_(std::move(key)) {}
  ~Connected() override { workers_.noteClosed(key_); }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;

  bool needsConnection() const noexcept override { return workers_.hasJobs(key_); }

 private:
  RemoteWorkers& workers_;
  const RemoteWorkerKey key_;
};

RemoteWorkers::RemoteWorkers(const Deps& deps)
    : deps_(deps),
      clock_(deps.run.clock),
      begun_(clock_.now()),
      periodic_("remote-workers", deps.run.clock, deps.log, kEachSecond, *this) {}

RemoteWorkers::~RemoteWorkers() { stop(); }

void RemoteWorkers::stop() {
  periodic_.stop();
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    isClosed_ = true;
    for (auto& [key, worker] : workers_) {
      if (worker.take) worker.take->isOver = true, changes.calls.push_back(worker.take->call);
      if (worker.stopWait) worker.stopWait->isOver = true, changes.calls.push_back(worker.stopWait->call);
    }
    for (const auto& [at, call] : timed_) changes.calls.push_back(call);
    timed_.clear();
    changes.runs.swap(stopped_);
  }
  carryOut(std::move(changes));
}

RemoteWorker* RemoteWorkers::find(const RemoteWorkerKey& key) {
  const auto found = workers_.find(key);
  return found == workers_.end() ? nullptr : &found->second;
}

// Returns null if there are too many workers.
RemoteWorker* RemoteWorkers::findOrAdd(const RemoteWorkerKey& key) {
  const Instant now = clock_.now();
  RemoteWorker* worker = find(key);
  if (worker == nullptr) {
    if (workers_.size() >= kMostWorkers) return nullptr;
    worker = &workers_[key];
    worker->since = worker->closedAt = now;
  }
  worker->lastSeen = now;
  return worker;
}

void RemoteWorkers::carryOut(RemoteChanges changes) {
  for (const auto& [endpoint, place] : changes.endedPlaces) (void)deps_.pools.recordGone(endpoint, place, {});
  for (const auto& [endpoint, place] : changes.idlePlaces) (void)deps_.pools.removeIdleWorker(endpoint, place);
  changes.runs.clear();
  for (const SuspendedCall& call : changes.calls) call.resume();
  storeLosses();
}

// Stores the losses and returns of jobs. Those that the storage refuses are tried again every second.
void RemoteWorkers::storeLosses() {
  std::vector<std::pair<EndpointId, LeaseRef>> lost;
  std::vector<std::pair<EndpointId, LeaseRef>> unharmed;
  {
    Lock lock(mutex_);
    lost.swap(lost_);
    unharmed.swap(unharmed_);
  }
  try {
    while (!unharmed.empty()) {
      deps_.run.reports.release({unharmed.back().second}, unharmed.back().first);
      unharmed.pop_back();
    }
    std::vector<LeaseRef> leases;
    for (const auto& [endpoint, lease] : lost) leases.push_back(lease);
    if (!leases.empty()) deps_.run.reports.lose(leases);
    for (const auto& [endpoint, lease] : lost) {
      deps_.log.write(LogLevel::warning, "remote.lost", "a remote worker of " + endpoint + " has lost " + lease.job);
    }
  } catch (const std::exception& error) {
    deps_.log.write(LogLevel::error, "remote.storage",
                    std::string("the jobs of lost remote workers cannot be returned yet: ") + error.what());
    Lock lock(mutex_);
    std::ranges::move(lost, std::back_inserter(lost_));
    std::ranges::move(unharmed, std::back_inserter(unharmed_));
  }
}

void RemoteWorkers::assign(ClaimedJob job) {
  const RemoteWorkerKey key{job.endpoint, workerOf(job.worker)};
  const auto run = std::make_shared<RemoteRun>(deps_.run, std::move(job));
  RemoteChanges changes;
  bool isAccepted = false;
  {
    Lock lock(mutex_);
    RemoteWorker* const worker = find(key);
    isAccepted = worker != nullptr && !isDraining_ && !isClosed_ && !worker->mayRun(*run, begun_);
    if (!isAccepted) {
      unharmed_.emplace_back(key.endpoint, run->lease());
      changes.endedPlaces.emplace_back(key.endpoint, run->place());
    } else if (worker->take && std::ranges::count(worker->take->places, run->place()) > 0) {
      worker->take->jobs.push_back(run);
      changes.calls.push_back(worker->take->call);
    } else {
      worker->owed.push_back({run, clock_.now()});
    }
  }
  if (isAccepted) run->onStop([this, key, lease = run->lease()] { stopJob(key, lease); });
  carryOut(std::move(changes));
}

void RemoteWorkers::removePlace(const WorkerId& place) {
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    for (auto& [key, worker] : workers_) {
      if (!worker.take || std::erase(worker.take->places, place) == 0) continue;
      changes.endedPlaces.emplace_back(key.endpoint, place);
    }
  }
  carryOut(std::move(changes));
}

// The caller removes the job from the worker.
void RemoteWorkers::lose(const RemoteWorkerKey& key, RemoteRunPtr run, RemoteChanges& changes) {
  lost_.emplace_back(key.endpoint, run->lease());
  changes.endedPlaces.emplace_back(key.endpoint, run->place());
  changes.runs.push_back(std::move(run));
  jobsEnded_.notifyAll();
}

// Also called by the stop token of a run, so the run must not be destroyed here.
void RemoteWorkers::stopJob(const RemoteWorkerKey& key, const LeaseRef& lease) {
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    RemoteWorker* const worker = find(key);
    if (worker == nullptr) return;
    const auto isStopped = [&lease](const RemoteRunPtr& run) { return run->lease() == lease; };
    const auto takeOut = [&](RemoteRunPtr& run) {
      changes.endedPlaces.emplace_back(key.endpoint, run->place());
      stopped_.push_back(std::move(run));
    };
    if (const auto found = worker->jobs.find(lease.job); found != worker->jobs.end() && isStopped(found->second.run)) {
      takeOut(found->second.run);
      worker->jobs.erase(found);
      worker->stops[lease.job] = {clock_.now(), clock_.now(), 0};
      if (worker->stopWait) changes.calls.push_back(worker->stopWait->call);
      jobsEnded_.notifyAll();
    }
    std::erase_if(worker->owed, [&](RemoteWorker::Owed& owed) {
      if (!isStopped(owed.run)) return false;
      takeOut(owed.run);
      return true;
    });
    if (worker->take) {
      std::erase_if(worker->take->jobs, [&](RemoteRunPtr& run) {
        if (!isStopped(run)) return false;
        std::erase(worker->take->places, run->place());
        takeOut(run);
        return true;
      });
    }
  }
  carryOut(std::move(changes));
}

std::shared_ptr<const ConnectionOwner> RemoteWorkers::connect(const RemoteWorkerKey& key) {
  auto connected = std::make_shared<Connected>(*this, key);
  Lock lock(mutex_);
  if (RemoteWorker* const worker = findOrAdd(key)) {
    ++worker->connections;
    worker->hasConnected = true;
  }
  return connected;
}

void RemoteWorkers::noteClosed(const RemoteWorkerKey& key) {
  Lock lock(mutex_);
  RemoteWorker* const worker = find(key);
  if (worker == nullptr || worker->connections == 0 || --worker->connections > 0) return;
  worker->closedAt = worker->lastSeen = clock_.now();
  worker->isLeaving = false;  // a new process under the same id
}

bool RemoteWorkers::hasJobs(const RemoteWorkerKey& key) const {
  Lock lock(mutex_);
  const auto found = workers_.find(key);
  return found != workers_.end() && !found->second.jobs.empty();
}

void RemoteWorkers::resumeAt(Instant at, SuspendedCall call) {
  {
    Lock lock(mutex_);
    if (!isClosed_) {
      timed_.emplace(at, call);
      return;
    }
  }
  call.resume();
}

void RemoteWorkers::run() {
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    const Instant now = clock_.now();
    changes.runs.swap(stopped_);
    for (auto at = timed_.begin(); at != timed_.end() && at->first <= now; at = timed_.erase(at)) {
      changes.calls.push_back(at->second);
    }
    for (auto at = workers_.begin(); at != workers_.end();) {
      auto& [key, worker] = *at;
      lookAfter(key, worker, now, changes);
      const bool isUnused = worker.connections == 0 && !worker.take && worker.jobs.empty() && worker.owed.empty();
      at = isUnused && now >= worker.lastSeen + kForgotten ? workers_.erase(at) : std::next(at);
    }
  }
  carryOut(std::move(changes));
}

void RemoteWorkers::lookAfter(const RemoteWorkerKey& key, RemoteWorker& worker, Instant now, RemoteChanges& changes) {
  if (worker.take && now >= worker.take->until) changes.calls.push_back(worker.take->call);
  std::erase_if(worker.stops, [now](const auto& stop) { return now >= stop.second.since + kStopLife; });
  const bool isDue = std::ranges::any_of(worker.stops, [now](const auto& stop) { return stop.second.nextAt <= now; });
  if (worker.stopWait && (isDue || now >= worker.stopWait->until)) changes.calls.push_back(worker.stopWait->call);
  std::erase_if(worker.owed, [&](RemoteWorker::Owed& owed) {
    if (now < owed.since + kUnseen) return false;
    unharmed_.emplace_back(key.endpoint, owed.run->lease());
    changes.endedPlaces.emplace_back(key.endpoint, owed.run->place());
    changes.runs.push_back(std::move(owed.run));
    return true;
  });
  if (worker.connections > 0 || now < worker.closedAt + kUnseen) return;
  for (auto& [id, job] : worker.jobs) lose(key, std::move(job.run), changes);
  worker.jobs.clear();
}

void RemoteWorkers::adopt(std::vector<ClaimedJob> jobs) {
  for (ClaimedJob& job : jobs) {
    const RemoteWorkerKey key{job.endpoint, workerOf(job.worker)};
    const auto run = std::make_shared<RemoteRun>(deps_.run, std::move(job));
    run->resumeChunks();
    {
      Lock lock(mutex_);
      RemoteWorker* const worker = findOrAdd(key);
      if (worker == nullptr) continue;  // its execution timeout ends the job
      worker->jobs[run->lease().job] = {run, clock_.now(), 0};
    }
    run->onStop([this, key, lease = run->lease()] { stopJob(key, lease); });
  }
}

// Ends the places, and returns the jobs to the queue that no worker has got.
void RemoteWorkers::endHandingOut(RemoteChanges& changes) {
  isDraining_ = true;
  for (auto& [key, worker] : workers_) {
    const auto giveBack = [&, &key = key](RemoteRunPtr& run) {
      unharmed_.emplace_back(key.endpoint, run->lease());
      changes.runs.push_back(std::move(run));
    };
    for (RemoteWorker::Owed& owed : worker.owed) giveBack(owed.run);
    worker.owed.clear();
    if (!worker.take) continue;
    for (RemoteRunPtr& run : std::exchange(worker.take->jobs, {})) giveBack(run);
    for (const WorkerId& place : std::exchange(worker.take->places, {})) {
      changes.idlePlaces.emplace_back(key.endpoint, place);
    }
  }
}

void RemoteWorkers::leaveJobsInHand() {
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    endHandingOut(changes);
  }
  carryOut(std::move(changes));
}

void RemoteWorkers::drain(Millis drainTime) {
  const Instant end = clock_.now() + drainTime;
  leaveJobsInHand();
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    const auto isDone = [this]() JOBQ_REQUIRES(mutex_) {
      return std::ranges::all_of(workers_, [](const auto& entry) { return entry.second.jobs.empty(); });
    };
    while (!isDone() && clock_.now() < end) clock_.waitUntil(mutex_, jobsEnded_, end);
    for (auto& [key, worker] : workers_) {
      for (auto& [id, job] : worker.jobs) {
        unharmed_.emplace_back(key.endpoint, job.run->lease());
        changes.runs.push_back(std::move(job.run));
      }
      worker.jobs.clear();
    }
  }
  carryOut(std::move(changes));
}

WorkerCounts RemoteWorkers::counts(const EndpointId& endpoint) const {
  WorkerCounts counts;
  for (const WorkerView& worker : view(endpoint)) {
    if (worker.state == "running") ++counts.running;
    if (worker.state == "idle") ++counts.idle;
    if (worker.state == "starting") ++counts.initializing;
    if (worker.state == "unhealthy") ++counts.unhealthy;
    if (worker.state == "idle") ++counts.ready;
  }
  return counts;
}

std::vector<WorkerView> RemoteWorkers::view(const EndpointId& endpoint) const {
  std::vector<WorkerView> workers;
  Lock lock(mutex_);
  const Instant now = clock_.now();
  for (auto at = workers_.lower_bound({endpoint, {}}); at != workers_.end() && at->first.endpoint == endpoint; ++at) {
    const RemoteWorker& worker = at->second;
    const bool isConnected = worker.connections > 0 || now < worker.closedAt + kUnseen;
    if (!isConnected && !worker.isUnhealthy) continue;
    const std::string_view state = worker.isUnhealthy     ? "unhealthy"
                                   : !worker.jobs.empty() ? "running"
                                   : !worker.hasPolled    ? "starting"
                                   : worker.isLeaving     ? "leaving"
                                                          : "idle";
    workers.push_back({at->first.worker, state, worker.since, nullptr});
  }
  return workers;
}

}  // namespace jobq

// The calls of remote workers: jobs, stops, pings and results.
#include <algorithm>
#include <iterator>
#include <set>

#include "core/workers/remote_workers.h"
#include "core/workers/worker_pools.h"

namespace jobq {
namespace {

constexpr Millis kTakeHold{25'000};  ///< the public worker SDK gives up after 90 s
constexpr Millis kStopHold{20'000};  ///< a worker that ends waits for the answer
constexpr Millis kTwoPings{20'000};  ///< a ping that was sent before a job came may arrive so much later
constexpr std::size_t kAnswerBytes = 20UL << 20;
constexpr int kOmissions = 2;  ///< successive pings without a job of the worker: it does not run the job

// Returns true when a ping without the job shows that the worker does not run it.
bool isOmitted(bool isListed, int& omitted) {
  omitted = isListed ? 0 : omitted + 1;
  return omitted >= kOmissions;
}

// Erases the elements for which `test` returns true; `test` may change an element.
template <class Map, class Test>
void eraseIf(Map& map, Test test) {
  for (auto at = map.begin(); at != map.end();) at = test(at->first, at->second) ? map.erase(at) : std::next(at);
}

}  // namespace

std::shared_ptr<RemoteTake> RemoteWorkers::beginTake(const RemoteWorkerKey& key, std::size_t most,
                                                     std::optional<bool> holdsJobs, SuspendedCall call) {
  const auto take = std::make_shared<RemoteTake>();
  std::vector<WorkerId> places;
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    RemoteWorker* const worker = findOrAdd(key);
    if (worker == nullptr) return nullptr;
    if (holdsJobs == false) {
      for (auto& [id, job] : worker->jobs) lose(key, std::move(job.run), changes);
      worker->jobs.clear();
      worker->stops.clear();
      worker->holdsUnknown = false;
    } else if (!worker->hasPolled && worker->jobs.empty()) {
      worker->holdsUnknown = worker->holdsUnknown || holdsJobs.has_value();
    }
    worker->hasPolled = true;
    worker->isUnhealthy = false;
    if (worker->take) {
      changes.calls.push_back(worker->take->call);
      endTake(key, *worker, *std::shared_ptr(worker->take), changes);
    }
    take->call = call;
    take->until = clock_.now() + kTakeHold;
    take->isOver = isClosed_;
    while (!worker->owed.empty() && take->jobs.size() < most) {
      take->jobs.push_back(std::move(worker->owed.back().run));
      worker->owed.pop_back();
    }
    if (take->jobs.empty() && !worker->isLeaving && !isDraining_ && !isClosed_) {
      for (std::size_t i = 0; i < most; ++i) {
        places.push_back(key.worker + ":" + std::to_string(++worker->lastPlace));
      }
    }
    take->places = places;
    worker->take = take;
  }
  carryOut(std::move(changes));
  for (const WorkerId& place : places) {
    if (!deps_.pools.addRemoteWorker(key.endpoint, place)) break;
  }
  removePlacesIfEnded(key, *take, places);
  return take;
}

// A second call of the worker may have ended the first one before its places were in the pool.
void RemoteWorkers::removePlacesIfEnded(const RemoteWorkerKey& key, const RemoteTake& take,
                                        const std::vector<WorkerId>& places) {
  {
    Lock lock(mutex_);
    const RemoteWorker* const worker = find(key);
    if (worker != nullptr && worker->take.get() == &take) return;
  }
  for (const WorkerId& place : places) (void)deps_.pools.removeIdleWorker(key.endpoint, place);
}

// Ends the parked call. Its jobs wait for the next call of the worker.
void RemoteWorkers::endTake(const RemoteWorkerKey& key, RemoteWorker& worker, RemoteTake& take,
                            RemoteChanges& changes) {
  take.isOver = true;
  for (RemoteRunPtr& run : take.jobs) {
    std::erase(take.places, run->place());
    worker.owed.push_back({std::move(run), clock_.now()});
  }
  take.jobs.clear();
  for (const WorkerId& place : take.places) changes.idlePlaces.emplace_back(key.endpoint, place);
  take.places.clear();
  if (worker.take.get() == &take) worker.take.reset();
}

std::optional<std::vector<RemoteRunPtr>> RemoteWorkers::pollTake(const RemoteWorkerKey& key, RemoteTake& take,
                                                                 bool hasLeft) {
  std::vector<RemoteRunPtr> jobs;
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    RemoteWorker* const worker = find(key);
    if (worker == nullptr) return jobs;
    worker->lastSeen = clock_.now();
    if (take.jobs.empty() && !take.isOver && !hasLeft && clock_.now() < take.until) return std::nullopt;
    // A long answer ends with its first job beyond the limit: the next call gets the others.
    std::size_t bytes = 0;
    while (!take.jobs.empty() && bytes < kAnswerBytes) {
      jobs.push_back(std::move(take.jobs.front()));
      take.jobs.erase(take.jobs.begin());
      bytes += jobs.back()->inputSize();
    }
    for (const RemoteRunPtr& run : jobs) {
      std::erase(take.places, run->place());
      if (hasLeft) {
        unharmed_.emplace_back(key.endpoint, run->lease());
        changes.endedPlaces.emplace_back(key.endpoint, run->place());
      } else {
        RemoteWorker::InHand& job = worker->jobs[run->lease().job];
        changes.runs.push_back(std::exchange(job.run, run));  // an earlier attempt whose end was just stored, or null
        job.since = clock_.now();
        job.omitted = 0;
      }
    }
    endTake(key, *worker, take, changes);
  }
  if (hasLeft) changes.runs.swap(jobs);
  carryOut(std::move(changes));
  return jobs;
}

std::shared_ptr<RemoteStopWait> RemoteWorkers::beginStopWait(const RemoteWorkerKey& key, SuspendedCall call) {
  const auto wait = std::make_shared<RemoteStopWait>();
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    RemoteWorker* const worker = findOrAdd(key);
    if (worker == nullptr) return nullptr;
    if (worker->stopWait) {
      worker->stopWait->isOver = true;
      changes.calls.push_back(worker->stopWait->call);
    }
    *wait = {call, clock_.now() + kStopHold, isClosed_};
    worker->stopWait = wait;
  }
  carryOut(std::move(changes));
  return wait;
}

std::optional<std::vector<JobId>> RemoteWorkers::pollStopWait(const RemoteWorkerKey& key, RemoteStopWait& wait,
                                                              bool hasLeft) {
  std::vector<JobId> stops;
  Lock lock(mutex_);
  RemoteWorker* const worker = find(key);
  if (worker == nullptr) return stops;
  const Instant now = clock_.now();
  worker->lastSeen = now;
  if (!wait.isOver && !hasLeft) {
    for (auto& [job, stop] : worker->stops) {
      if (stop.nextAt > now) continue;
      stop.nextAt = now + kEachSecond;
      stops.push_back(job);
    }
    if (stops.empty() && now < wait.until) return std::nullopt;
  }
  wait.isOver = true;
  if (worker->stopWait.get() == &wait) worker->stopWait.reset();
  return stops;
}

void RemoteWorkers::notePing(const RemoteWorkerKey& key, const std::vector<JobId>& jobs, bool isUnhealthy) {
  const std::set<JobId> listed(jobs.begin(), jobs.end());
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    RemoteWorker* const worker = findOrAdd(key);
    if (worker == nullptr) return;
    const Instant now = clock_.now();
    const bool isFirst = !worker->lastPing.has_value();
    worker->lastPing = now;
    worker->isUnhealthy = isUnhealthy;
    eraseIf(worker->stops,
            [&listed](const JobId& job, auto& stop) { return isOmitted(listed.contains(job), stop.omitted); });
    // A worker that has not connected since the start of the server may be one whose handler blocks it.
    const bool hasListed =
        std::ranges::any_of(worker->jobs, [&listed](const auto& job) { return listed.contains(job.first); });
    if (!worker->hasConnected && hasListed) worker->closedAt = now;
    eraseIf(worker->jobs, [&](const JobId& id, RemoteWorker::InHand& job) {
      if (now < job.since + kTwoPings || !isOmitted(listed.contains(id), job.omitted)) return false;
      lose(key, std::move(job.run), changes);
      return true;
    });
    // The jobs of an earlier life of the server are in the queue again, and their results will not count.
    if (worker->holdsUnknown || (isFirst && !worker->hasPolled)) {
      for (const JobId& id : listed) {
        if (!worker->jobs.contains(id)) worker->stops.try_emplace(id, RemoteWorker::Stop{now, now, 0});
      }
      worker->holdsUnknown = false;
      if (worker->stopWait) changes.calls.push_back(worker->stopWait->call);
    }
  }
  carryOut(std::move(changes));
}

RemoteRunPtr RemoteWorkers::findRun(const RemoteWorkerKey& key, const JobId& job) {
  Lock lock(mutex_);
  RemoteWorker* const worker = find(key);
  if (worker == nullptr) return nullptr;
  worker->lastSeen = clock_.now();
  const auto found = worker->jobs.find(job);
  return found == worker->jobs.end() ? nullptr : found->second.run;
}

void RemoteWorkers::noteResult(const RemoteWorkerKey& key, const JobId& job, bool isLeaving) {
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    RemoteWorker* const worker = find(key);
    if (worker == nullptr) return;
    worker->stops.erase(job);
    if (const auto found = worker->jobs.find(job); found != worker->jobs.end()) {
      changes.endedPlaces.emplace_back(key.endpoint, found->second.run->place());
      changes.runs.push_back(std::move(found->second.run));
      worker->jobs.erase(found);
      jobsEnded_.notifyAll();
    }
    if (isLeaving) {
      worker->isLeaving = true;
      for (const SuspendedCall& call : endWaits(key, *worker, changes)) changes.calls.push_back(call);
    }
  }
  carryOut(std::move(changes));
}

// Ends the parked calls of the worker, and returns them.
std::vector<SuspendedCall> RemoteWorkers::endWaits(const RemoteWorkerKey& key, RemoteWorker& worker,
                                                   RemoteChanges& changes) {
  std::vector<SuspendedCall> calls;
  if (worker.take) {
    calls.push_back(worker.take->call);
    endTake(key, worker, *std::shared_ptr(worker.take), changes);
  }
  if (worker.stopWait) {
    calls.push_back(worker.stopWait->call);
    worker.stopWait->isOver = true;
  }
  return calls;
}

}  // namespace jobq

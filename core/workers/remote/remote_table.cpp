#include "core/workers/remote/remote_table.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

namespace jobq {
namespace {

constexpr Millis kForgotten{60'000};  ///< without any sign for so long, a worker is forgotten
constexpr Millis kStopLife{600'000};  ///< a stop is repeated for so long
constexpr Millis kCutOffLife{
    30'000};                   ///< the same for a job whose worker was cut off: it waits at the head of the queue
constexpr int kOmissions = 2;  ///< successive pings without a job that show that the worker does not run the job
constexpr std::size_t kMostStops = 1'000;  ///< jobs of an unknown time, for each worker
constexpr std::size_t kLongestId = 128;    ///< bytes of the id of a job

// Counts the successive pings that do not list the job in `omitted`. Returns true if their number shows that the worker
// does not run the job.
bool isOmitted(bool isListed, int& omitted) {
  omitted = isListed ? 0 : omitted + 1;
  return omitted >= kOmissions;
}

// Erases the elements for which `test` returns true; `test` may change an element.
template <class Map, class Test>
void eraseIf(Map& map, Test test) {
  for (auto at = map.begin(); at != map.end();) at = test(at->first, at->second) ? map.erase(at) : std::next(at);
}

bool isSelected(const RemoteSelection& workers, const RemoteWorkerKey& key) {
  return !workers || workers->contains(key);
}

}  // namespace

RemoteWorker* RemoteTable::findOrAdd(const RemoteWorkerKey& key, Instant now) {
  RemoteWorker* worker = find(key);
  if (worker == nullptr) {
    worker = roster_.add(key);
    if (worker == nullptr) return nullptr;
    worker->since = now;
    worker->link.begin(now);
  }
  worker->lastSeen = now;
  return worker;
}

void RemoteTable::loseJob(const RemoteWorkerKey& key, RemoteRunPtr run, RemoteChanges& changes) {
  changes.lost.push_back(run->lease());
  changes.endedPlaces.emplace_back(key.endpoint, run->place());
  changes.ended.push_back(std::move(run));
}

void RemoteTable::returnJob(const RemoteWorkerKey& key, RemoteRunPtr run, RemoteChanges& changes) {
  changes.unharmed.push_back(run->lease());
  changes.endedPlaces.emplace_back(key.endpoint, run->place());
  changes.ended.push_back(std::move(run));
}

void RemoteTable::beginTake(const RemoteWorkerKey& key, RemoteWorker& worker, const std::shared_ptr<RemoteTake>& take,
                            std::optional<bool> holdsJobs, Instant now, RemoteChanges& changes) {
  if (holdsJobs == false) {
    for (auto& [id, job] : worker.jobs) {
      worker.rivals.noteDisowned(id);
      loseJob(key, std::move(job.run), changes);
    }
    worker.jobs.clear();
    worker.stops.clear();
    take->isIdle = true;
  }
  // Beside adopted jobs a worker with jobs may have others, which are queued again.
  const bool mayHaveOthers = holdsJobs == true && !isShared_;
  worker.shown.noteCall(take->isIdle    ? EarlierJobsEvent::callWithoutJobs
                        : mayHaveOthers ? EarlierJobsEvent::callWithJobs
                                        : EarlierJobsEvent::call,
                        now);
  worker.unhealthy.reset();
  for (auto& [id, job] : worker.jobs) job.isShown = true;
  for (auto& [id, stop] : worker.stops) stop.isShown = true;
  if (worker.take) {
    worker.replaced.push_back(worker.take->call);
    if (worker.rivals.noteSign(now)) changes.rivals.push_back(key);
    endTake(key, worker, *std::shared_ptr(worker.take), now, changes);
  }
  worker.take = take;
}

void RemoteTable::endTake(const RemoteWorkerKey& key, RemoteWorker& worker, RemoteTake& take, Instant now,
                          RemoteChanges& changes) {
  take.isOver = true;
  // Jobs that are owed already have come later.
  std::vector<RemoteWorker::Owed> owed;
  owed.reserve(take.jobs.size() + worker.owed.size());
  for (RemoteRunPtr& run : take.jobs) {
    std::erase(take.places, run->place());
    owed.push_back({std::move(run), now});
  }
  std::ranges::move(worker.owed, std::back_inserter(owed));
  worker.owed = std::move(owed);
  take.jobs.clear();
  for (const WorkerId& place : take.places) changes.idlePlaces.emplace_back(key.endpoint, place);
  take.places.clear();
  if (worker.take.get() == &take) worker.take.reset();
}

void returnHanded(const RemoteWorkerKey& key, RemoteWorker& worker, RemoteTake& take, RemoteChanges& changes) {
  for (const RemoteRunPtr& run : take.handed) {
    const auto found = worker.jobs.find(run->lease().job);
    if (found == worker.jobs.end() || found->second.run != run) continue;  // ended meanwhile
    changes.unharmed.push_back(run->lease());
    changes.endedPlaces.emplace_back(key.endpoint, run->place());
    changes.ended.push_back(run);
  }
  // After the last allocation: a job that is not returned stays with the worker, and is lost by the rules.
  for (const RemoteRunPtr& run : changes.ended) worker.jobs.erase(run->lease().job);
  take.handed.clear();
}

void RemoteTable::endCalls(const RemoteWorkerKey& key, RemoteWorker& worker, Instant now, RemoteChanges& changes) {
  std::ranges::move(std::exchange(worker.replaced, {}), std::back_inserter(changes.calls));
  if (worker.take) {
    changes.calls.push_back(worker.take->call);
    endTake(key, worker, *std::shared_ptr(worker.take), now, changes);
  }
  if (worker.stopWait) {
    changes.calls.push_back(worker.stopWait->call);
    worker.stopWait->isOver = true;
  }
}

void RemoteTable::endAllCalls(Instant now, RemoteChanges& changes) {
  for (auto& [key, worker] : roster_.all()) endCalls(key, worker, now, changes);
}

void RemoteTable::notePing(const RemoteWorkerKey& key, RemoteWorker& worker, const std::vector<JobId>& jobs,
                           Instant now, RemoteChanges& changes) {
  const std::set<JobId> listed(jobs.begin(), jobs.end());
  worker.shown.notePing(now);
  eraseIf(worker.stops, [&listed, now](const JobId& job, auto& stop) {
    const bool isListed = listed.contains(job);
    if (isListed) stop.listedAt = now;
    stop.isShown = stop.isShown || isListed;
    return stop.isKnownToWorker(now) && isOmitted(isListed, stop.omitted);
  });
  for (auto& [id, job] : worker.jobs) {
    if (listed.contains(id)) job.noteListed(now);
  }
  eraseIf(worker.jobs, [&](const JobId& id, RemoteWorker::InHand& job) {
    if (now < job.since + kTwoPings || !isOmitted(listed.contains(id), job.omitted)) return false;
    loseJob(key, std::move(job.run), changes);
    return true;
  });
  if (isShared_) return;  // RemoteElsewhere knows the listed jobs that no node has
  if (!worker.shown.arePingsAwaited()) return;
  // The other jobs are of an earlier life of the server. The jobs are in the queue again, and a result of the worker
  // will not count.
  for (const JobId& id : listed) {
    const bool isStop = !worker.jobs.contains(id) && id.size() <= kLongestId && worker.stops.size() < kMostStops;
    if (!isStop || worker.stops.contains(id) || !stops_.reserve(key.endpoint)) continue;
    worker.stops.emplace(id, RemoteWorker::Stop{now, now});
  }
  worker.shown.noteEarlierJobs();
  if (worker.stopWait) changes.calls.push_back(worker.stopWait->call);
}

void RemoteTable::stopRun(const RemoteWorkerKey& key, const LeaseRef& lease, Instant now, RemoteChanges& changes) {
  RemoteWorker* const worker = find(key);
  if (worker == nullptr) return;
  const auto removeRun = [&](RemoteRunPtr& run) {
    if (run->lease() != lease) return false;
    changes.endedPlaces.emplace_back(key.endpoint, run->place());
    if (worker->take) std::erase(worker->take->places, run->place());
    changes.stopped.push_back(std::move(run));
    return true;
  };
  const auto found = worker->jobs.find(lease.job);
  const RemoteWorker::Stop stop =
      found == worker->jobs.end() ? RemoteWorker::Stop{} : found->second.stopAt(now, !isShared_);
  if (found != worker->jobs.end() && removeRun(found->second.run)) {
    worker->stops[lease.job] = stop;
    worker->jobs.erase(found);
    if (worker->stopWait) changes.calls.push_back(worker->stopWait->call);
  }
  std::erase_if(worker->owed, [&](RemoteWorker::Owed& owed) { return removeRun(owed.run); });
  if (worker->take && std::erase_if(worker->take->jobs, removeRun) > 0) endEmptyTake(key, *worker, now, changes);
}

// A call without a place would wait in vain: the worker calls again, with new places.
void RemoteTable::endEmptyTake(const RemoteWorkerKey& key, RemoteWorker& worker, Instant now, RemoteChanges& changes) {
  if (!worker.take->places.empty() || !worker.take->jobs.empty()) return;
  changes.calls.push_back(worker.take->call);
  endTake(key, worker, *std::shared_ptr(worker.take), now, changes);
}

void RemoteTable::removePlace(const WorkerId& place, Instant now, RemoteChanges& changes) {
  for (auto& [key, worker] : roster_.all()) {
    if (worker.take && std::erase(worker.take->places, place) > 0) endEmptyTake(key, worker, now, changes);
  }
}

void RemoteTable::noteClosed(const RemoteWorkerKey& key, ConnectionEnd end, Instant now) {
  RemoteWorker* const worker = find(key);
  if (worker == nullptr || !worker->link.noteEnded(end, now)) return;
  worker->lastSeen = now;
  if (worker->state.apply(RemoteWorkerEvent::disconnect)) worker->leftAt = now;
}

void RemoteTable::noteTime(Instant now, bool isStopping, RemoteChanges& changes) {
  stops_.clear();
  roster_.removeIf([&](const RemoteWorkerKey& key, RemoteWorker& worker) {
    checkWorker(key, worker, now, isStopping, changes);
    stops_.add(key.endpoint, worker.stops.size());
    return worker.hasNothing() && now >= worker.lastSeen + kForgotten;
  });
}

void RemoteTable::checkWorker(const RemoteWorkerKey& key, RemoteWorker& worker, Instant now, bool isStopping,
                              RemoteChanges& changes) {
  std::ranges::move(std::exchange(worker.replaced, {}), std::back_inserter(changes.calls));
  if (isRetired(worker.state.get())) {
    endCalls(key, worker, now, changes);
  } else if (worker.take && now >= worker.take->until) {
    changes.calls.push_back(worker.take->call);
  }
  eraseIf(worker.stops, [now](const JobId&, const auto& stop) { return now >= stop.since + kStopLife; });
  const bool isDue = std::ranges::any_of(worker.stops, [now](const auto& stop) { return stop.second.nextAt <= now; });
  if (worker.stopWait && (isDue || now >= worker.stopWait->until)) changes.calls.push_back(worker.stopWait->call);
  std::erase_if(worker.owed, [&](RemoteWorker::Owed& owed) {
    if (now < owed.since + RemoteLink::kUnseen) return false;
    returnJob(key, std::move(owed.run), changes);
    return true;
  });
  if (isStopping) return;
  eraseIf(worker.jobs, [&](const JobId& id, RemoteWorker::InHand& job) {
    if (!worker.link.hasLost(std::max(job.since, job.listedAt), now)) return false;
    RemoteWorker::Stop& stop = worker.stops[id] = job.stopAt(now);  // the worker may be alive, and cut off
    stop.since = now - kStopLife + kCutOffLife;
    loseJob(key, std::move(job.run), changes);
    return true;
  });
}

void RemoteTable::endPlaces(RemoteChanges& changes) {
  for (auto& [key, worker] : roster_.all()) {
    for (RemoteWorker::Owed& owed : worker.owed) returnJob(key, std::move(owed.run), changes);
    worker.owed.clear();
    if (!worker.take) continue;
    for (RemoteRunPtr& run : worker.take->jobs) {
      std::erase(worker.take->places, run->place());
      returnJob(key, std::move(run), changes);
    }
    worker.take->jobs.clear();
    for (const WorkerId& place : worker.take->places) changes.idlePlaces.emplace_back(key.endpoint, place);
    worker.take->places.clear();
  }
}

bool RemoteTable::hasJobs(const RemoteSelection& workers) const {
  return std::ranges::any_of(roster_.all(), [&workers](const auto& entry) {
    return isSelected(workers, entry.first) && !entry.second.jobs.empty();
  });
}

void RemoteTable::returnJobs(const RemoteSelection& workers, Instant now, RemoteChanges& changes) {
  for (auto& [key, worker] : roster_.all()) {
    if (!isSelected(workers, key)) continue;
    for (auto& [id, job] : worker.jobs) {
      if (isShared_) worker.stops[id] = job.stopAt(now);
      returnJob(key, std::move(job.run), changes);
    }
    worker.jobs.clear();
  }
}

}  // namespace jobq

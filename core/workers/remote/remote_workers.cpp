#include "core/workers/remote/remote_workers.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "core/workers/pool/worker_set.h"
#include "core/workers/remote/remote_connections.h"
#include "core/workers/remote/remote_view.h"

namespace jobq {
namespace {

constexpr Millis kEachSecond{1'000};
constexpr Millis kTakeHold{25'000};  ///< the public worker SDK gives up after 90 s
constexpr Millis kStopHold{20'000};  ///< a worker that ends waits for the answer

/// Bytes of inputs in an answer; the answer ends with the job that passes the limit.
constexpr std::size_t kAnswerBytes = 20UL << 20;

// Returns the bytes of the inputs in the next answer.
std::uint64_t bytesOfAnswer(const RemoteTake& take) {
  std::size_t bytes = 0;
  for (auto job = take.jobs.begin(); job != take.jobs.end() && bytes < kAnswerBytes; ++job)
    bytes += (*job)->inputSize();
  return bytes;
}

RemoteWorkerKey keyOf(const RemoteRun& run) { return {run.endpoint(), WorkerId(workerOfPlace(run.place()))}; }

}  // namespace

RemoteWorkers::RemoteWorkers(const Deps& deps)
    : runs_(deps.run),
      clock_(deps.run.clock),
      log_(deps.log),
      begun_(clock_.now()),
      draining_(deps.draining),
      pools_(deps.pools),
      offers_(pools_),
      returns_(deps.run.reports, deps.log),
      lives_(deps.run.storage, deps.run.clock),
      table_(deps.run.storage.leaseLife().has_value()),
      elsewhere_(deps.run.storage.leaseLife().has_value()),
      lastPlace_(begun_.time_since_epoch().count()),
      periodic_("remote-workers", deps.run.clock, deps.log, kEachSecond, *this) {}

void RemoteWorkers::stop() {
  periodic_.stop();
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    isClosed_ = true;
    table_.endAllCalls(clock_.now(), changes);
    changes.ended.swap(stopped_);
  }
  carryOut(std::move(changes));
}

void RemoteWorkers::run() {
  RemoteChanges changes;
  bool mayOffer = false;
  {
    Lock lock(mutex_);
    mayOffer = !isDraining_ && !isClosed_;
    changes.ended.swap(stopped_);
    const Instant now = clock_.now();
    table_.noteTime(now, draining_ || !elsewhere_.isFresh(now), changes);
    elsewhere_.resumeStops(table_, now, changes);
  }
  carryOut(std::move(changes));
  performAll([this] { returns_.store(); },
             [&] {
               if (mayOffer) offers_.offerAgain();
             });
}

void RemoteWorkers::carryOut(RemoteChanges changes) {
  if (!changes.stopped.empty()) {
    Lock lock(mutex_);
    std::ranges::move(changes.stopped, std::back_inserter(stopped_));
  }
  if (!changes.endedPlaces.empty()) pools_.removeWorkers(changes.endedPlaces);
  if (!changes.idlePlaces.empty()) pools_.removeIdleWorkers(changes.idlePlaces);
  if (!changes.ended.empty() || !changes.stopped.empty()) {
    Lock lock(mutex_);
    jobsEnded_.notifyAll();
  }
  changes.ended.clear();
  for (const SuspendedCall& call : changes.calls) call.resume();
  for (const RemoteWorkerKey& key : changes.rivals) {
    log_.write(LogLevel::warning, "remote.sharedId",
               "two processes work as " + key.worker + " of the endpoint " + key.endpoint +
                   ", and lose each other's jobs: give each process an id of its own, or leave RUNPOD_POD_ID out of "
                   "the environment that they share");
  }
  if (changes.lost.empty() && changes.unharmed.empty()) return;
  returns_.add(changes.lost, changes.unharmed);
  returns_.store();
}

std::optional<SuspendedCall> RemoteWorkers::assign(ClaimedJob job) {
  const auto run = std::make_shared<RemoteRun>(runs_, std::move(job));
  const RemoteWorkerKey key = keyOf(*run);
  const auto [id, attempt] = run->lease();
  const Instant unheardUntil = attempt > 1 ? lives_.check() : Instant::min();
  RemoteChanges changes;
  std::optional<SuspendedCall> call;
  bool isAccepted = false;
  {
    Lock lock(mutex_);
    RemoteWorker* const worker = table_.find(key);
    isAccepted = worker != nullptr && !isDraining_ && !isClosed_ && !worker->mayRun(*run, begun_) &&
                 !elsewhere_.mayRun(key, id) && worker->mayGet(attempt, unheardUntil, clock_.now());
    // The call of the place may have ended: the current call of the worker gives a place for the job.
    RemoteTake* const take = isAccepted && worker->take && !worker->take->places.empty() ? worker->take.get() : nullptr;
    if (!isAccepted) {
      // The call has lost the place, and may wait in vain. Within a second the worker may get a job, or the other nodes
      // may know that the worker has delivered the job. Public workers call again at once, so the call is held for a
      // second.
      if (worker != nullptr && worker->take && std::ranges::count(worker->take->places, run->place()) > 0) {
        worker->take->until = std::min(worker->take->until, clock_.now() + kEachSecond);
      }
      changes.unharmed.push_back(run->lease());
      changes.endedPlaces.emplace_back(key.endpoint, run->place());
    } else if (take != nullptr && take->jobs.size() < take->places.size()) {
      take->jobs.reserve(take->places.size());
      if (std::ranges::count(take->places, run->place()) == 0) {
        const auto spare = std::ranges::find_if(take->places, [take](const WorkerId& place) {
          return std::ranges::none_of(take->jobs, [&](const RemoteRunPtr& job) { return job->place() == place; });
        });
        changes.idlePlaces.emplace_back(key.endpoint, *spare);
        *spare = run->place();
      }
      take->jobs.push_back(run);
      call = take->call;
    } else {
      worker->owed.push_back({run, clock_.now()});
    }
  }
  if (isAccepted) run->setListener(*this);
  carryOut(std::move(changes));
  return call;
}

void RemoteWorkers::removePlace(const WorkerId& place) {
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    table_.removePlace(place, clock_.now(), changes);
  }
  pools_.removeIdleWorker(place);
  carryOut(std::move(changes));
}

std::shared_ptr<RemoteTake> RemoteWorkers::beginTake(const RemoteWorkerKey& key, std::size_t most,
                                                     std::optional<bool> holdsJobs, SuspendedCall call) {
  const auto take = std::make_shared<RemoteTake>();
  std::vector<WorkerId> places;
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    const Instant now = clock_.now();
    RemoteWorker* const worker = table_.findOrAdd(key, now);
    if (worker == nullptr) return nullptr;
    if (holdsJobs == false) elsewhere_.noteIdle(key);
    table_.beginTake(key, *worker, take, holdsJobs, now, changes);
    take->call = call;
    const bool leaves = now < worker->leavesUntil;
    take->until = leaves ? worker->leavesUntil : now + kTakeHold;
    take->isOver = isClosed_;
    const auto owedEnd = worker->owed.begin() + static_cast<std::ptrdiff_t>(std::min(most, worker->owed.size()));
    take->jobs.reserve(worker->owed.size());
    for (auto owed = worker->owed.begin(); owed != owedEnd; ++owed) take->jobs.push_back(std::move(owed->run));
    worker->owed.erase(worker->owed.begin(), owedEnd);
    const bool isServing = worker->state.get() == RemoteWorkerState::serving && !leaves;
    const bool mayHaveMore = take->jobs.empty() && isServing && !isDraining_ && !isClosed_;
    const std::size_t granted = std::min(most, std::max<std::size_t>(kSharedPlaces / table_.all().size(), 1));
    for (std::size_t i = 0; mayHaveMore && i < granted; ++i) {
      places.push_back(key.worker + ":" + std::to_string(++lastPlace_));
    }
    take->places = places;
  }
  carryOut(std::move(changes));
  offers_.offer(key.endpoint, take, std::move(places));
  return take;
}

std::optional<std::vector<RemoteRunPtr>> RemoteWorkers::pollTake(const RemoteWorkerKey& key, RemoteTake& take,
                                                                 bool hasLeft, OutputRoom* room) {
  std::vector<RemoteRunPtr> jobs;
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    const Instant now = clock_.now();
    RemoteWorker* const worker = table_.findOrAdd(key, now);
    if (worker == nullptr) return jobs;
    if (hasLeft) returnHanded(key, *worker, take, changes);
    if (take.jobs.empty() && !take.isOver && !hasLeft && now < take.until) return std::nullopt;
    if (room != nullptr && !hasLeft && !room->draw(bytesOfAnswer(take))) {
      take.until = now;  // resumes the call within a second
      return std::nullopt;
    }
    // The next call gets the jobs beyond the limit.
    take.handed.reserve(take.jobs.size());
    changes.ended.reserve(changes.ended.size() + take.jobs.size());
    for (std::size_t bytes = 0; !take.jobs.empty() && (hasLeft || bytes < kAnswerBytes);) {
      RemoteWorker::InHand* const job = hasLeft ? nullptr : &worker->jobs[take.jobs.front()->lease().job];
      RemoteRunPtr run = std::move(take.jobs.front());
      take.jobs.erase(take.jobs.begin());
      std::erase(take.places, run->place());
      bytes += run->inputSize();
      if (hasLeft) {
        changes.unharmed.push_back(run->lease());
        changes.endedPlaces.emplace_back(key.endpoint, run->place());
        changes.ended.push_back(std::move(run));
        continue;
      }
      *job = {run, now, 0};
      worker->lastJobAt = now;
      take.handed.push_back(std::move(run));
    }
    jobs = take.handed;
    RemoteTable::endTake(key, *worker, take, now, changes);
  }
  carryOut(std::move(changes));
  return jobs;
}

std::shared_ptr<RemoteStopWait> RemoteWorkers::beginStopWait(const RemoteWorkerKey& key, SuspendedCall call) {
  const auto wait = std::make_shared<RemoteStopWait>();
  Lock lock(mutex_);
  const Instant now = clock_.now();
  RemoteWorker* const worker = table_.findOrAdd(key, now);
  if (worker == nullptr) return nullptr;
  if (worker->stopWait) {
    worker->stopWait->isOver = true;
    worker->replaced.push_back(worker->stopWait->call);
  }
  *wait = {call, now + kStopHold, isClosed_};
  worker->stopWait = wait;
  return wait;
}

std::optional<std::vector<JobId>> RemoteWorkers::pollStopWait(const RemoteWorkerKey& key, RemoteStopWait& wait,
                                                              bool hasLeft) {
  std::vector<JobId> stops;
  Lock lock(mutex_);
  const Instant now = clock_.now();
  RemoteWorker* const worker = table_.findOrAdd(key, now);
  if (worker == nullptr) return stops;
  if (!wait.isOver && !hasLeft) {
    for (auto& [job, stop] : worker->stops) {
      if (stop.nextAt > now) continue;
      stop.nextAt = now + kEachSecond;
      stops.push_back(job);
    }
    elsewhere_.collectDueStops(key, now, stops);
    if (stops.empty() && now < wait.until) return std::nullopt;
  }
  wait.isOver = true;
  if (worker->stopWait.get() == &wait) worker->stopWait.reset();
  return stops;
}

void RemoteWorkers::notePing(const RemoteWorkerKey& key, const std::vector<JobId>& jobs, bool isUnhealthy,
                             std::string reason) {
  RemoteChanges changes;
  const bool isNew = isServed(key.endpoint);  // only there may a ping make a worker known
  {
    Lock lock(mutex_);
    const Instant now = clock_.now();
    RemoteWorker* worker = table_.find(key);
    if (worker == nullptr && isNew) worker = table_.findOrAdd(key, now);
    if (worker == nullptr) return;
    worker->lastSeen = now;
    worker->unhealthy = isUnhealthy ? std::optional(std::move(reason)) : std::nullopt;
    table_.notePing(key, *worker, jobs, now, changes);
    if (elsewhere_.notePing(key, *worker, jobs, now)) worker->shown.noteShown(now - kPingDelay);
  }
  carryOut(std::move(changes));
}

std::vector<RemoteRunPtr> RemoteWorkers::findRuns(const RemoteWorkerKey& key, std::span<const JobId> jobs) {
  std::vector<RemoteRunPtr> runs(jobs.size());
  Lock lock(mutex_);
  RemoteWorker* const worker = table_.find(key);
  if (worker == nullptr) return runs;
  worker->lastSeen = clock_.now();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (const auto found = worker->jobs.find(jobs[i]); found != worker->jobs.end()) runs[i] = found->second.run;
  }
  return runs;
}

void RemoteWorkers::noteResults(const RemoteWorkerKey& key, std::span<const Reported> jobs, bool isLeaving) {
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    for (const Reported& each : jobs) {
      elsewhere_.noteResult(key, each.job, each.run ? std::optional(each.run->lease().attempt) : std::nullopt);
    }
    RemoteWorker* const worker = table_.find(key);
    if (worker == nullptr) return;
    changes.ended.reserve(jobs.size());
    for (const Reported& reported : jobs) {
      worker->stops.erase(reported.job);
      // A later attempt may have come since the result was matched to `run`.
      const auto found = worker->jobs.find(reported.job);
      const bool isOfRival = found == worker->jobs.end() && !reported.run && worker->rivals.isDisowned(reported.job);
      if (isOfRival && worker->rivals.noteSign(clock_.now())) changes.rivals.push_back(key);
      if (found == worker->jobs.end() || found->second.run != reported.run) continue;
      if (reported.isLost) changes.lost.push_back(found->second.run->lease());
      changes.endedPlaces.emplace_back(key.endpoint, found->second.run->place());
      changes.ended.push_back(std::move(found->second.run));
      worker->jobs.erase(found);
    }
    if (isLeaving) {
      worker->state.apply(RemoteWorkerEvent::leave);
      RemoteTable::endCalls(key, *worker, clock_.now(), changes);
    }
  }
  carryOut(std::move(changes));
}

void RemoteWorkers::runMustEnd(const RemoteRun& run) {
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    table_.stopRun(keyOf(run), run.lease(), clock_.now(), changes);
  }
  carryOut(std::move(changes));
}

std::shared_ptr<const ConnectionOwner> RemoteWorkers::connect(const RemoteWorkerKey& key, WorkerCall call) {
  return RemoteConnections(*this).connect(key, call);
}

std::vector<WorkerView> RemoteWorkers::view(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  return viewRemoteWorkers(table_, endpoint, clock_.now());
}

bool RemoteWorkers::hasServed(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  return table_.hasServed(endpoint);
}

void RemoteWorkers::adopt(std::vector<ClaimedJob> jobs) {
  for (ClaimedJob& job : jobs) {
    pools_.addBusyWorker(job);
    const auto run = std::make_shared<RemoteRun>(runs_, std::move(job));
    run->resumeChunks();
    {
      Lock lock(mutex_);
      const Instant now = clock_.now();
      RemoteWorker* const worker = table_.findOrAdd(keyOf(*run), now);
      if (worker == nullptr) continue;  // the execution timeout ends the job
      worker->jobs[run->lease().job] = {run, now, 0};
    }
    run->setListener(*this);
  }
}

void RemoteWorkers::drain(Millis drainTime, const RemoteSelection& ending) {
  const Instant end = clock_.now() + drainTime;
  RemoteChanges changes;
  {
    Lock lock(mutex_);
    isDraining_ = true;
    table_.endPlaces(changes);
  }
  carryOut(std::move(changes));
  RemoteChanges rest;
  {
    Lock lock(mutex_);
    while (table_.hasJobs(ending) && clock_.now() < end) clock_.waitUntil(mutex_, jobsEnded_, end);
    table_.returnJobs(ending, clock_.now(), rest);
  }
  carryOut(std::move(rest));
}

}  // namespace jobq

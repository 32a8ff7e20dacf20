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
      begun_(deps.run.clock.now()),
      registry_(deps),
      offers_(registry_.pools()),
      periodic_("remote-workers", deps.run.clock, deps.log, kEachSecond, *this) {}

void RemoteWorkers::stop() {
  periodic_.stop();
  registry_.change([](RemoteState& state, Instant now, RemoteChanges& changes) {
    state.isClosed = true;
    state.table.endAllCalls(now, changes);
    changes.ended.swap(state.stopped);
  });
}

void RemoteWorkers::run() {
  bool mayOffer = false;
  registry_.change([&](RemoteState& state, Instant now, RemoteChanges& changes) {
    mayOffer = !state.isDraining && !state.isClosed;
    changes.ended.swap(state.stopped);
    state.table.noteTime(now, registry_.isStopping() || !state.elsewhere.isFresh(now), changes);
    state.elsewhere.resumeStops(state.table, now, changes);
  });
  performAll([this] { registry_.returns().store(); },
             [&] {
               if (mayOffer) offers_.offerAgain();
             });
}

std::optional<SuspendedCall> RemoteWorkers::assign(ClaimedJob job) {
  const auto run = std::make_shared<RemoteRun>(runs_, std::move(job));
  const RemoteWorkerKey key = keyOf(*run);
  const LeaseRef lease = run->lease();
  const Instant unheardUntil = lease.attempt > 1 ? registry_.lives().check() : Instant::min();
  std::optional<SuspendedCall> call;
  bool isAccepted = false;
  registry_.change([&](RemoteState& state, Instant now, RemoteChanges& changes) {
    RemoteWorker* const worker = state.table.find(key);
    isAccepted = worker != nullptr && !state.isDraining && !state.isClosed && !worker->mayRun(*run, begun_) &&
                 !state.elsewhere.mayRun(key, lease.job) && worker->mayGet(lease.attempt, unheardUntil, now);
    // The call of the place may have ended: the current call of the worker gives a place for the job.
    RemoteTake* const take = isAccepted && worker->take && !worker->take->places.empty() ? worker->take.get() : nullptr;
    if (!isAccepted) {
      // The call has lost the place, and may wait in vain. Within a second the worker may get a job, or the other nodes
      // may know that the worker has delivered the job. Public workers call again at once, so the call is held for a
      // second.
      if (worker != nullptr && worker->take && std::ranges::count(worker->take->places, run->place()) > 0) {
        worker->take->until = std::min(worker->take->until, now + kEachSecond);
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
      worker->owed.push_back({run, now});
    }
  });
  if (isAccepted) run->setListener(*this);
  return call;
}

void RemoteWorkers::removePlace(const WorkerId& place) {
  registry_.pools().removeIdleWorker(place);
  registry_.change(
      [&](RemoteState& state, Instant now, RemoteChanges& changes) { state.table.removePlace(place, now, changes); });
}

std::shared_ptr<RemoteTake> RemoteWorkers::beginTake(const RemoteWorkerKey& key, std::size_t most,
                                                     std::optional<bool> holdsJobs, SuspendedCall call) {
  std::shared_ptr<RemoteTake> take;
  std::vector<WorkerId> places;
  registry_.change([&](RemoteState& state, Instant now, RemoteChanges& changes) {
    RemoteWorker* const worker = state.table.findOrAdd(key, now);
    if (worker == nullptr) return;
    take = std::make_shared<RemoteTake>();
    if (holdsJobs == false) state.elsewhere.noteIdle(key);
    state.table.beginTake(key, *worker, take, holdsJobs, now, changes);
    take->call = call;
    const bool leaves = now < worker->leavesUntil;
    take->until = leaves ? worker->leavesUntil : now + kTakeHold;
    take->isOver = state.isClosed;
    const auto owedEnd = worker->owed.begin() + static_cast<std::ptrdiff_t>(std::min(most, worker->owed.size()));
    take->jobs.reserve(worker->owed.size());
    for (auto owed = worker->owed.begin(); owed != owedEnd; ++owed) take->jobs.push_back(std::move(owed->run));
    worker->owed.erase(worker->owed.begin(), owedEnd);
    const bool isServing = worker->state.get() == RemoteWorkerState::serving && !leaves;
    const bool mayHaveMore = take->jobs.empty() && isServing && !state.isDraining && !state.isClosed;
    const std::size_t granted = std::min(most, std::max<std::size_t>(kSharedPlaces / state.table.all().size(), 1));
    for (std::size_t i = 0; mayHaveMore && i < granted; ++i) {
      places.push_back(key.worker + ":" + std::to_string(++state.lastPlace));
    }
    take->places = places;
  });
  if (take) offers_.offer(key.endpoint, take, std::move(places));
  return take;
}

std::optional<std::vector<RemoteRunPtr>> RemoteWorkers::pollTake(const RemoteWorkerKey& key, RemoteTake& take,
                                                                 bool hasLeft, OutputRoom* room) {
  std::optional<std::vector<RemoteRunPtr>> answer;
  registry_.change([&](RemoteState& state, Instant now, RemoteChanges& changes) {
    RemoteWorker* const worker = state.table.findOrAdd(key, now);
    if (worker == nullptr) {
      answer.emplace();
      return;
    }
    if (hasLeft) returnHanded(key, *worker, take, changes);
    if (take.jobs.empty() && !take.isOver && !hasLeft && now < take.until) return;
    if (room != nullptr && !hasLeft && !room->draw(bytesOfAnswer(take))) {
      take.until = now;  // resumes the call within a second
      return;
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
    answer = take.handed;
    RemoteTable::endTake(key, *worker, take, now, changes);
  });
  return answer;
}

std::shared_ptr<RemoteStopWait> RemoteWorkers::beginStopWait(const RemoteWorkerKey& key, SuspendedCall call) {
  std::shared_ptr<RemoteStopWait> wait;
  registry_.change([&](RemoteState& state, Instant now, RemoteChanges& /*changes*/) {
    RemoteWorker* const worker = state.table.findOrAdd(key, now);
    if (worker == nullptr) return;
    wait = std::make_shared<RemoteStopWait>(RemoteStopWait{call, now + kStopHold, state.isClosed});
    if (worker->stopWait) {
      worker->stopWait->isOver = true;
      worker->replaced.push_back(worker->stopWait->call);
    }
    worker->stopWait = wait;
  });
  return wait;
}

std::optional<std::vector<JobId>> RemoteWorkers::pollStopWait(const RemoteWorkerKey& key, RemoteStopWait& wait,
                                                              bool hasLeft) {
  std::optional<std::vector<JobId>> answer;
  registry_.change([&](RemoteState& state, Instant now, RemoteChanges& /*changes*/) {
    std::vector<JobId> stops;
    RemoteWorker* const worker = state.table.findOrAdd(key, now);
    if (worker != nullptr && !wait.isOver && !hasLeft) {
      for (auto& [job, stop] : worker->stops) {
        if (stop.nextAt > now) continue;
        stop.nextAt = now + kEachSecond;
        stops.push_back(job);
      }
      state.elsewhere.collectDueStops(key, now, stops);
      if (stops.empty() && now < wait.until) return;
    }
    answer = std::move(stops);
    if (worker == nullptr) return;
    wait.isOver = true;
    if (worker->stopWait.get() == &wait) worker->stopWait.reset();
  });
  return answer;
}

void RemoteWorkers::notePing(const RemoteWorkerKey& key, const std::vector<JobId>& jobs, bool isUnhealthy,
                             std::string reason) {
  const bool isNew = isServed(key.endpoint);  // only there may a ping make a worker known
  registry_.change([&](RemoteState& state, Instant now, RemoteChanges& changes) {
    RemoteWorker* worker = state.table.find(key);
    if (worker == nullptr && isNew) worker = state.table.findOrAdd(key, now);
    if (worker == nullptr) return;
    worker->lastSeen = now;
    worker->unhealthy = isUnhealthy ? std::optional(std::move(reason)) : std::nullopt;
    state.table.notePing(key, *worker, jobs, now, changes);
    if (state.elsewhere.notePing(key, *worker, jobs, now)) worker->shown.noteShown(now - kPingDelay);
  });
}

std::vector<RemoteRunPtr> RemoteWorkers::findRuns(const RemoteWorkerKey& key, std::span<const JobId> jobs) {
  std::vector<RemoteRunPtr> runs(jobs.size());
  registry_.change([&](RemoteState& state, Instant now, RemoteChanges& /*changes*/) {
    RemoteWorker* const worker = state.table.find(key);
    if (worker == nullptr) return;
    worker->lastSeen = now;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (const auto found = worker->jobs.find(jobs[i]); found != worker->jobs.end()) runs[i] = found->second.run;
    }
  });
  return runs;
}

void RemoteWorkers::noteResults(const RemoteWorkerKey& key, std::span<const Reported> jobs, bool isLeaving) {
  registry_.change([&](RemoteState& state, Instant now, RemoteChanges& changes) {
    for (const Reported& each : jobs) {
      state.elsewhere.noteResult(key, each.job, each.run ? std::optional(each.run->lease().attempt) : std::nullopt);
    }
    RemoteWorker* const worker = state.table.find(key);
    if (worker == nullptr) return;
    changes.ended.reserve(jobs.size());
    for (const Reported& reported : jobs) {
      worker->stops.erase(reported.job);
      // A later attempt may have come since the result was matched to `run`.
      const auto found = worker->jobs.find(reported.job);
      const bool isOfRival = found == worker->jobs.end() && !reported.run && worker->rivals.isDisowned(reported.job);
      if (isOfRival && worker->rivals.noteSign(now)) changes.rivals.push_back(key);
      if (found == worker->jobs.end() || found->second.run != reported.run) continue;
      if (reported.isLost) changes.lost.push_back(found->second.run->lease());
      changes.endedPlaces.emplace_back(key.endpoint, found->second.run->place());
      changes.ended.push_back(std::move(found->second.run));
      worker->jobs.erase(found);
    }
    if (isLeaving) {
      worker->state.apply(RemoteWorkerEvent::leave);
      RemoteTable::endCalls(key, *worker, now, changes);
    }
  });
}

void RemoteWorkers::runMustEnd(const RemoteRun& run) {
  registry_.change([&](RemoteState& state, Instant now, RemoteChanges& changes) {
    state.table.stopRun(keyOf(run), run.lease(), now, changes);
  });
}

std::shared_ptr<const ConnectionOwner> RemoteWorkers::connect(const RemoteWorkerKey& key, WorkerCall call) {
  return openConnection(registry_, key, call);
}

std::vector<WorkerView> RemoteWorkers::view(const EndpointId& endpoint) const {
  return registry_.read(
      [&](const RemoteState& state, Instant now) { return viewRemoteWorkers(state.table, endpoint, now); });
}

bool RemoteWorkers::hasServed(const EndpointId& endpoint) const {
  return registry_.read([&](const RemoteState& state, Instant /*now*/) { return state.table.hasServed(endpoint); });
}

void RemoteWorkers::adopt(std::vector<ClaimedJob> jobs) {
  for (ClaimedJob& job : jobs) {
    registry_.pools().addBusyWorker(job);
    const auto run = std::make_shared<RemoteRun>(runs_, std::move(job));
    run->resumeChunks();
    bool isAdded = false;
    registry_.change([&](RemoteState& state, Instant now, RemoteChanges& /*changes*/) {
      RemoteWorker* const worker = state.table.findOrAdd(keyOf(*run), now);
      isAdded = worker != nullptr;
      if (isAdded) worker->jobs[run->lease().job] = {run, now, 0};
    });
    if (isAdded) run->setListener(*this);  // otherwise the execution timeout ends the job
  }
}

void RemoteWorkers::drain(Millis drainTime, const RemoteSelection& ending) {
  const Instant end = runs_.clock.now() + drainTime;
  registry_.change([](RemoteState& state, Instant /*now*/, RemoteChanges& changes) {
    state.isDraining = true;
    state.table.endPlaces(changes);
  });
  registry_.awaitNoJobs(ending, end);
  registry_.change(
      [&](RemoteState& state, Instant now, RemoteChanges& changes) { state.table.returnJobs(ending, now, changes); });
}

}  // namespace jobq

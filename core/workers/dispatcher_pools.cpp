// The dispatcher's other half: how many workers there are, and which release they run.
#include <algorithm>
#include <exception>

#include "core/jobs/wakeup.h"
#include "core/workers/dispatcher.h"
#include "core/workers/scaler.h"

namespace jobq {

// core/decisions/workers.md: a handler that ignores its stop token for stopGrace is logged as stuck, its slot replaced.
void Dispatcher::noticeStuck() {
  const Instant now = rooms_.clock.now();
  std::vector<std::string> found;
  {
    Lock lock(mutex_);
    for (auto& [id, crew] : crews_) {
      for (auto& [worker, member] : crew.members) {
        if (member.duty != Duty::busy || member.stuckFrom > now) continue;
        member.duty = Duty::stuck;
        found.push_back("worker " + worker + " of " + id + " ignores the stop of " + member.lease.job +
                        ": its slot is replaced, its thread goes on until the handler returns");
      }
    }
  }
  for (const std::string& line : found) rooms_.log.write(LogLevel::error, "worker.stuck", line);
}

void Dispatcher::dismissIdle() {
  const Instant now = rooms_.clock.now();
  std::vector<WorkerId> leaving;
  {
    Lock lock(mutex_);
    for (auto& [id, crew] : crews_) {
      std::size_t staying = crew.slots();
      for (auto& [worker, member] : crew.members) {
        const bool tooMany = staying > crew.endpoint->workersMax;  // it was lowered
        if (staying <= crew.endpoint->workersMin && !tooMany) break;
        if (member.duty != Duty::idle) continue;
        if (!tooMany && member.since + crew.endpoint->idleTimeout > now) continue;
        if (!tooMany && rooms_.wakeup.rings(id) && !crew.endpoint->paused) continue;
        member.duty = Duty::leaving;
        leaving.push_back(worker);
        --staying;
      }
    }
  }
  for (const WorkerId& worker : leaving) rooms_.executor.dismiss(worker);
}

void Dispatcher::rollReleases() {
  std::vector<EndpointId> ids;
  {
    Lock lock(mutex_);
    for (auto at = crews_.begin(); at != crews_.end();) {
      const Crew& crew = at->second;
      if (crew.members.empty() && (crew.retiring || !crew.target())) {
        at = crews_.erase(at);
        continue;
      }
      if (crew.isRolling()) ids.push_back(at->first);
      ++at;
    }
  }
  for (const EndpointId& id : ids) {
    while (!stopping_ && rollOne(id)) {
    }
  }
}

// True: there may be more to do at once.
bool Dispatcher::rollOne(const EndpointId& id) {
  Crew::Step step;
  {
    Lock lock(mutex_);
    const auto crew = crews_.find(id);
    if (crew == crews_.end()) return false;
    step = crew->second.nextStep();
  }
  for (const WorkerId& worker : step.dismissed) rooms_.executor.dismiss(worker);
  // Their jobs go back in line, to be removed there: what their handlers say now is no outcome, and is told to nobody.
  if (!step.stopped.empty()) rooms_.storage.leases().release(step.stopped);
  for (const LeaseRef& lease : step.stopped) stopRun(lease);
  if (step.hire) hire(id, step);
  return step.hire;
}

// An endpoint may be deleted in the moment of the shutdown, when the dispatcher's thread looks no more. Its running
// jobs have no result that a caller could read, so the shutdown must not wait for them.
void Dispatcher::stopRetired() {
  std::vector<EndpointId> ids;
  {
    Lock lock(mutex_);
    for (const auto& [id, crew] : crews_) {
      if (crew.retiring) ids.push_back(id);
    }
  }
  for (const EndpointId& id : ids) {
    try {
      rollOne(id);
    } catch (const std::exception& error) {
      rooms_.log.write(LogLevel::error, "dispatcher.storage",
                       "the jobs of the deleted endpoint " + id + " run until the drain ends: " + error.what());
    }
  }
}

void Dispatcher::hireWhereNeeded() {
  std::vector<EndpointId> ids;
  {
    Lock lock(mutex_);
    for (auto& [id, crew] : crews_) {
      crew.scaleAt = Instant::max();
      if (mayWantMore(crew)) ids.push_back(id);
    }
  }
  for (const EndpointId& id : ids) {
    for (std::size_t missing = wanted(id); missing > 0 && !stopping_; --missing) hire(id, {});
  }
}

// As far as it can be said without asking the storage.
bool Dispatcher::mayWantMore(const Crew& crew) const {
  const std::size_t size = crew.slots();
  if (!crew.target() || size >= crew.endpoint->workersMax || rooms_.clock.now() < crew.startAfter) return false;
  if (size < crew.endpoint->workersMin) return true;
  return !crew.endpoint->paused && rooms_.wakeup.rings(crew.endpoint->id);
}

// How many workers more the endpoint should have.
std::size_t Dispatcher::wanted(const EndpointId& id) {
  // api.md, "policy object": a low-priority job does not trigger scaling. The bell is told first: a normal job that
  // comes after the count rings it.
  const bool rings = rooms_.wakeup.rings(id);
  if (rings) rooms_.wakeup.keepRinging(id, true);
  const EndpointCounts jobs = rings ? rooms_.storage.jobs().counts(id) : EndpointCounts{};
  if (jobs.inQueue > jobs.inQueueLow) rooms_.wakeup.keepRinging(id);
  const Instant now = rooms_.clock.now();
  Lock lock(mutex_);
  const auto found = crews_.find(id);
  if (found == crews_.end()) return 0;
  Crew& crew = found->second;
  const auto narrow = [](std::size_t number) { return static_cast<std::uint32_t>(number); };
  ScalerView view{crew.endpoint->scaling, crew.endpoint->workersMin, crew.endpoint->workersMax, narrow(crew.slots())};
  view.coming = narrow(crew.count(Duty::idle) + crew.count(Duty::reserved) + crew.count(Duty::starting));
  for (const auto& [worker, member] : crew.members) {
    if (member.duty == Duty::busy) ++(member.lowPriority ? view.busyLow : view.busy);
  }
  if (!crew.endpoint->paused) view.waiting = jobs.inQueue - std::min(jobs.inQueueLow, jobs.inQueue);
  if (jobs.headQueuedAt) view.headWait = now - *jobs.headQueuedAt;
  const ScalerWish wish = scale(view);
  if (wish.again) crew.scaleAt = now + *wish.again;
  return wish.workers > view.workers ? wish.workers - view.workers : 0;
}

void Dispatcher::hire(const EndpointId& id, const Crew::Step& why) {
  const WorkerId worker = node_ + "-" + std::to_string(++hired_);
  EndpointPtr endpoint;
  ReleasePtr release;
  {
    Lock lock(mutex_);
    const auto crew = crews_.find(id);
    if (crew == crews_.end() || !crew->second.target()) return;
    endpoint = crew->second.endpoint;
    release = crew->second.target();
    const Instant now = rooms_.clock.now();
    Member member{Duty::starting, now, now, release};
    member.replaces = why.replaces;
    member.spare = why.spare;
    crew->second.members[worker] = std::move(member);
  }
  try {
    rooms_.executor.hire(endpoint, release, worker, *this);
  } catch (const std::exception& error) {  // no thread, or no memory: its slot must not stay taken
    workerGone(id, worker, error.what());
  }
}

// The dispatcher is woken only when there is something for it to do: a job for this worker, a release that goes on, or
// an idle time that ends before it would look by itself.
void Dispatcher::workerReady(const EndpointId& endpoint, const WorkerId& worker) {
  const Instant now = rooms_.clock.now();
  bool early = false;
  bool stays = false;
  {
    Lock lock(mutex_);
    Crew& crew = crews_.at(endpoint);
    stays = crew.takeReady(worker, now);
    early = crew.isRolling() ||
            (crew.members.size() > crew.endpoint->workersMin && now + crew.endpoint->idleTimeout < looksAt_.load());
  }
  if (!stays) rooms_.executor.dismiss(worker);
  if (early || (stays && rooms_.wakeup.rings(endpoint))) rooms_.wakeup.nudge();
}

void Dispatcher::workerGone(const EndpointId& endpoint, const WorkerId& worker, const std::string& failure) {
  bool halted = false;
  {
    Lock lock(mutex_);
    const auto crew = crews_.find(endpoint);
    if (crew == crews_.end()) return;
    const bool was = crew->second.halted;
    crew->second.takeGone(worker, failure, rooms_.clock.now());
    halted = crew->second.halted && !was;
  }
  if (!failure.empty()) {
    rooms_.log.write(LogLevel::error, "worker.failed", "a worker of " + endpoint + " cannot work: " + failure);
  }
  if (halted) {
    rooms_.log.write(LogLevel::error, "release.halted",
                     "the newest version of " + endpoint + " does not start: its workers keep the one before");
  }
  rooms_.wakeup.nudge();
}

void Dispatcher::setEndpoint(const EndpointPtr& now) {
  {
    Lock lock(mutex_);
    if (!now->release && !crews_.contains(now->id)) return;  // remote workers pull its jobs
    crews_[now->id].change(now);
  }
  rooms_.wakeup.hang(now->id);
  rooms_.wakeup.keepRinging(now->id);
  rooms_.wakeup.nudge();
}

void Dispatcher::retire(const EndpointId& endpoint) {
  {
    Lock lock(mutex_);
    const auto crew = crews_.find(endpoint);
    if (crew == crews_.end()) return;
    crew->second.retiring = true;
  }
  rooms_.wakeup.nudge();
}

bool Dispatcher::hasLeft(const EndpointId& endpoint) const {
  Lock lock(mutex_);
  const auto crew = crews_.find(endpoint);
  if (crew == crews_.end()) return true;
  return crew->second.members.size() == crew->second.count(Duty::stuck) + crew->second.count(Duty::leaving);
}

Instant Dispatcher::nextLook() const {
  Instant next = Instant::max();
  const Instant now = rooms_.clock.now();
  Lock lock(mutex_);
  for (const auto& [id, crew] : crews_) {
    if (crew.startAfter > now) next = std::min(next, crew.startAfter);
    next = std::min(next, crew.scaleAt);
    for (const auto& [worker, member] : crew.members) {
      if (member.duty == Duty::busy) next = std::min(next, member.stuckFrom);
    }
    if (crew.slots() <= crew.endpoint->workersMin) continue;
    for (const auto& [worker, member] : crew.members) {
      if (member.duty == Duty::idle) next = std::min(next, member.since + crew.endpoint->idleTimeout);
    }
  }
  return next;
}

WorkerCounts Dispatcher::counts(const EndpointId& endpoint) const {
  WorkerCounts counts;
  Lock lock(mutex_);
  const auto found = crews_.find(endpoint);
  if (found == crews_.end()) return counts;
  const Crew& crew = found->second;
  const auto of = [&crew](Duty duty) { return static_cast<std::uint32_t>(crew.count(duty)); };
  counts.idle = of(Duty::idle) + of(Duty::reserved);
  counts.ready = counts.idle;
  counts.initializing = of(Duty::starting);
  counts.running = of(Duty::busy);
  counts.unhealthy = of(Duty::stuck);
  counts.throttled = rooms_.clock.now() < crew.startAfter ? 1 : 0;
  return counts;
}

CrewView Dispatcher::view(const EndpointId& endpoint) const {
  CrewView view;
  Lock lock(mutex_);
  const auto found = crews_.find(endpoint);
  if (found == crews_.end()) return view;
  const Crew& crew = found->second;
  for (const auto& [id, member] : crew.members) {
    view.workers.push_back({id, nameOf(member.duty), member.startedAt, member.release});
  }
  view.rolling = crew.isRolling();
  view.halted = crew.halted;
  view.fault = crew.fault;
  return view;
}

std::map<std::string, std::size_t> Dispatcher::workersOfTemplates() const {
  std::map<std::string, std::size_t> workers;
  Lock lock(mutex_);
  for (const auto& [id, crew] : crews_) {
    for (const auto& [worker, member] : crew.members) {
      if (!member.release->templateId.empty()) ++workers[member.release->templateId];
    }
  }
  return workers;
}

std::string_view Dispatcher::waitReason(const Endpoint& endpoint, bool lowPriority) const {
  if (endpoint.paused) return "paused";
  Lock lock(mutex_);
  const auto found = crews_.find(endpoint.id);
  if (found == crews_.end() || endpoint.workersMax == 0) return "no_workers";
  const Crew& crew = found->second;
  if (crew.count(Duty::busy) + crew.count(Duty::idle) + crew.count(Duty::reserved) > 0) return "workers_busy";
  if (crew.count(Duty::starting) > 0) return "starting";
  if (rooms_.clock.now() < crew.startAfter || crew.count(Duty::stuck) > 0) return "worker_crashing";
  return lowPriority ? "no_workers" : "starting";
}

}  // namespace jobq

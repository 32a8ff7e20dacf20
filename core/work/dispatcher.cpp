#include "core/work/dispatcher.h"

#include <algorithm>
#include <new>
#include <system_error>

#include "core/jobs/wakeup.h"

namespace jobq {
namespace {

constexpr Millis kStorageRetry{500};
constexpr Millis kFirstBackoff{1'000};
constexpr Millis kLongestBackoff{30'000};

/// More than one, so that a claim that finds just the caller's job knows that there is no other.
constexpr std::size_t kServedByCaller = 4;

}  // namespace

Dispatcher::Dispatcher(const Rooms& rooms, std::string node, const std::vector<EndpointPtr>& endpoints)
    : rooms_(rooms), node_(std::move(node)) {
  for (const EndpointPtr& endpoint : endpoints) {
    if (endpoint->handler != nullptr) crews_[endpoint->id].endpoint = endpoint;
  }
  rooms_.wakeup.setServe([this](const EndpointId& endpoint) { serve(endpoint); });
}

void Dispatcher::start() {
  if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { loop(); });
}

void Dispatcher::stop() {
  stopping_ = true;
  rooms_.wakeup.nudge();
  if (thread_.joinable()) thread_.join();
  Lock lock(mutex_);
  while (serving_ > 0) served_.wait(mutex_);
}

void Dispatcher::loop() {
  nameThread("dispatcher");
  while (!stopping_) {
    rooms_.wakeup.wait(rooms_.clock, looksAt_);
    if (!stopping_) lookAndPlan();
  }
}

bool Dispatcher::turn() {
  if (!rooms_.wakeup.take() && rooms_.clock.now() < looksAt_.load()) return false;
  lookAndPlan();
  return true;
}

void Dispatcher::lookAndPlan() {
  looksAt_ = Instant::max();  // who becomes idle while this looks may have been overlooked
  try {
    look();
    looksAt_ = nextLook();
  } catch (const std::exception& error) {  // also of a storage that is out of memory: the next look may go better
    rooms_.log.write(LogLevel::error, "dispatcher.storage", error.what());
    looksAt_ = rooms_.clock.now() + kStorageRetry;
  }
}

void Dispatcher::look() {
  noticeStuck();
  dismissIdle();
  while (!stopping_ && claimBatch(reserveWorkers(nullptr))) {
  }
  hireWhereNeeded();
}

// On the thread of a caller who waits for the job. Whatever is left to do is the dispatcher's: more workers, more jobs,
// a storage that fails.
void Dispatcher::serve(const EndpointId& endpoint) {
  {
    Lock lock(mutex_);
    if (stopping_) return;
    ++serving_;
  }
  bool done = false;
  try {
    done = claimBatch(reserveWorkers(&endpoint)) && !rooms_.wakeup.rings(endpoint);
  } catch (const std::exception& error) {
    rooms_.log.write(LogLevel::error, "dispatcher.storage", error.what());
  }
  if (!done) rooms_.wakeup.nudge();
  Lock lock(mutex_);
  --serving_;
  served_.notifyAll();
}

// The idle workers of the endpoints whose bells ring (of one of them, or of all): nobody else claims for them now.
std::vector<ClaimWant> Dispatcher::reserveWorkers(const EndpointId* only) {
  std::vector<ClaimWant> wants;
  Lock lock(mutex_);
  for (auto& [id, crew] : crews_) {
    if ((only != nullptr && id != *only) || !rooms_.wakeup.rings(id)) continue;
    ClaimWant want{id, {}};
    for (auto& [worker, member] : crew.members) {
      if (member.duty != Duty::idle) continue;
      member.duty = Duty::reserved;
      want.workers.push_back(worker);
      if (only != nullptr && want.workers.size() == kServedByCaller) break;
    }
    if (!want.workers.empty()) wants.push_back(std::move(want));
  }
  return wants;
}

// The jobs' workers are busy, the others idle as before.
void Dispatcher::settle(const std::vector<ClaimWant>& wants, const std::vector<ClaimedJob>& jobs) {
  Lock lock(mutex_);
  for (const ClaimedJob& job : jobs) crews_[job.endpoint].members[job.worker] = {Duty::busy, job.startedAt, job.lease};
  for (const ClaimWant& want : wants) {
    for (const WorkerId& worker : want.workers) {
      Member& member = crews_[want.endpoint].members[worker];
      if (member.duty == Duty::reserved) member.duty = Duty::idle;
    }
  }
}

// True: there were jobs.
bool Dispatcher::claimBatch(const std::vector<ClaimWant>& wants) {
  if (wants.empty()) return false;
  const RunningJobs::Claiming claiming(rooms_.running);
  std::vector<ClaimedJob> jobs;
  for (const ClaimWant& want : wants) rooms_.wakeup.silence(want.endpoint);
  try {
    jobs = rooms_.storage.leases().claim(wants, Holder{node_, Holder::Kind::process, {}});
  } catch (...) {
    settle(wants, {});
    for (const ClaimWant& want : wants) rooms_.wakeup.keepRinging(want.endpoint);
    throw;
  }
  settle(wants, jobs);
  for (const ClaimWant& want : wants) {
    const auto got = std::count_if(jobs.begin(), jobs.end(),
                                   [&want](const ClaimedJob& job) { return job.endpoint == want.endpoint; });
    if (static_cast<std::size_t>(got) == want.workers.size()) {
      rooms_.wakeup.keepRinging(want.endpoint);
    } else if (rooms_.wakeup.rings(want.endpoint)) {
      // Whoever rang meanwhile found these workers reserved.
      rooms_.wakeup.nudge();
    }
  }
  const bool any = !jobs.empty();
  hand(std::move(jobs));
  return any;
}

void Dispatcher::hand(std::vector<ClaimedJob> jobs) {
  for (ClaimedJob& job : jobs) {
    const LeaseRef lease = job.lease;
    const EndpointId endpoint = job.endpoint;
    const WorkerId worker = job.worker;
    try {
      rooms_.executor.assign(std::move(job));
    } catch (const std::bad_alloc&) {
      takeBack(lease);
      rooms_.wakeup.keepRinging(endpoint);
      workerReady(endpoint, worker);
    }
  }
}

// There was no memory to give the job to its worker: it must not be held by nobody.
void Dispatcher::takeBack(const LeaseRef& lease) {
  try {
    rooms_.storage.leases().release(std::vector{lease});
    rooms_.log.write(LogLevel::error, "dispatcher.memory", lease.job + " went back in line for want of memory");
  } catch (const StorageError& error) {
    rooms_.log.write(LogLevel::error, "dispatcher.memory",
                     lease.job + " stays IN_PROGRESS until its execution timeout: " + error.what());
  }
}

void Dispatcher::stopRun(const LeaseRef& lease) {
  // Whoever is about to run it sees that (RunningJobs::Claiming) and does not begin.
  rooms_.running.stop(lease);
  bool early = false;
  {
    Lock lock(mutex_);
    for (auto& [id, crew] : crews_) {
      for (auto& [worker, member] : crew.members) {
        if (member.duty != Duty::busy || member.lease != lease || member.stuckFrom != Instant::max()) continue;
        member.stuckFrom = rooms_.clock.now() + crew.endpoint->stopGrace;
        early = member.stuckFrom < looksAt_.load();
      }
    }
  }
  if (early) rooms_.wakeup.nudge();
}

// decisions.md, "Jobs": a handler that ignores its stop token for stopGrace is logged as stuck, its slot replaced.
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
      std::size_t staying = slots(crew);
      for (auto& [worker, member] : crew.members) {
        if (staying <= crew.endpoint->workersMin) break;
        if (member.duty != Duty::idle || member.since + crew.endpoint->idleTimeout > now) continue;
        if (rooms_.wakeup.rings(id)) continue;
        member.duty = Duty::leaving;
        leaving.push_back(worker);
        --staying;
      }
    }
  }
  for (const WorkerId& worker : leaving) rooms_.executor.dismiss(worker);
}

void Dispatcher::hireWhereNeeded() {
  std::vector<EndpointPtr> endpoints;
  {
    Lock lock(mutex_);
    for (const auto& [id, crew] : crews_) {
      if (wantsMore(crew)) endpoints.push_back(crew.endpoint);
    }
  }
  for (const EndpointPtr& endpoint : endpoints) {
    while (!stopping_ && wantsOneMore(endpoint->id)) hire(endpoint);
  }
}

// As far as it can be said without asking the storage.
bool Dispatcher::wantsMore(const Crew& crew) const {
  const std::size_t size = slots(crew);
  if (size >= crew.endpoint->workersMax || rooms_.clock.now() < crew.startAfter) return false;
  if (size < crew.endpoint->workersMin) return true;
  return rooms_.wakeup.rings(crew.endpoint->id) &&
         count(crew, Duty::idle) + count(crew, Duty::reserved) + count(crew, Duty::starting) == 0;
}

bool Dispatcher::wantsOneMore(const EndpointId& id) {
  {
    Lock lock(mutex_);
    const Crew& crew = crews_[id];
    if (!wantsMore(crew)) return false;
    if (slots(crew) < crew.endpoint->workersMin) return true;
  }
  // api.md, "policy object": a low-priority job does not trigger scaling. The bell is told first: a normal job that
  // comes after the count rings it.
  rooms_.wakeup.keepRinging(id, true);
  const EndpointCounts waiting = rooms_.storage.jobs().counts(id);
  if (waiting.inQueue <= waiting.inQueueLow) return false;
  rooms_.wakeup.keepRinging(id);
  return true;
}

void Dispatcher::hire(const EndpointPtr& endpoint) {
  const WorkerId worker = node_ + "-" + std::to_string(++hired_);
  {
    Lock lock(mutex_);
    crews_[endpoint->id].members[worker] = {Duty::starting, rooms_.clock.now()};
  }
  try {
    rooms_.executor.hire(endpoint, worker, *this);
  } catch (const std::exception& error) {  // no thread, or no memory: its slot must not stay taken
    workerGone(endpoint->id, worker, error.what());
  }
}

// The dispatcher is woken only when there is something for it to do: a job for this worker, or an idle time that ends
// before it would look by itself.
void Dispatcher::workerReady(const EndpointId& endpoint, const WorkerId& worker) {
  const Instant now = rooms_.clock.now();
  bool early = false;
  bool replaced = false;
  {
    Lock lock(mutex_);
    Crew& crew = crews_[endpoint];
    Member& member = crew.members[worker];
    // It was stuck, and is free again: somebody else may have its slot by now.
    const bool wasStuck = member.duty == Duty::stuck;
    member = {Duty::idle, now};
    replaced = wasStuck && slots(crew) > crew.endpoint->workersMax;
    if (replaced) member.duty = Duty::leaving;
    crew.backoff = Millis(0);
    early = crew.members.size() > crew.endpoint->workersMin && now + crew.endpoint->idleTimeout < looksAt_.load();
  }
  if (replaced) return rooms_.executor.dismiss(worker);
  if (early || rooms_.wakeup.rings(endpoint)) rooms_.wakeup.nudge();
}

void Dispatcher::workerGone(const EndpointId& endpoint, const WorkerId& worker, const std::string& failure) {
  {
    Lock lock(mutex_);
    Crew& crew = crews_[endpoint];
    crew.members.erase(worker);
    if (!failure.empty()) {
      crew.backoff = std::clamp(crew.backoff * 2, kFirstBackoff, kLongestBackoff);
      crew.startAfter = rooms_.clock.now() + crew.backoff;
    }
  }
  if (!failure.empty()) {
    rooms_.log.write(LogLevel::error, "worker.failed", "a worker of " + endpoint + " cannot work: " + failure);
  }
  rooms_.wakeup.nudge();
}

Instant Dispatcher::nextLook() const {
  Instant next = Instant::max();
  const Instant now = rooms_.clock.now();
  Lock lock(mutex_);
  for (const auto& [id, crew] : crews_) {
    if (crew.startAfter > now) next = std::min(next, crew.startAfter);
    for (const auto& [worker, member] : crew.members) {
      if (member.duty == Duty::busy) next = std::min(next, member.stuckFrom);
    }
    if (slots(crew) <= crew.endpoint->workersMin) continue;
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
  counts.idle = static_cast<std::uint32_t>(count(crew, Duty::idle) + count(crew, Duty::reserved));
  counts.ready = counts.idle;
  counts.initializing = static_cast<std::uint32_t>(count(crew, Duty::starting));
  counts.running = static_cast<std::uint32_t>(count(crew, Duty::busy));
  counts.unhealthy = static_cast<std::uint32_t>(count(crew, Duty::stuck));
  counts.throttled = rooms_.clock.now() < crew.startAfter ? 1 : 0;
  return counts;
}

std::size_t Dispatcher::count(const Crew& crew, Duty duty) {
  return static_cast<std::size_t>(
      std::count_if(crew.members.begin(), crew.members.end(), [duty](const auto& m) { return m.second.duty == duty; }));
}

// Of workersMax: whoever works or may work, and those who are stuck beyond what is replaced.
std::size_t Dispatcher::slots(const Crew& crew) {
  const std::size_t stuck = count(crew, Duty::stuck);
  const std::size_t replaced = std::min<std::size_t>(stuck, crew.endpoint->maxStuck);
  return crew.members.size() - count(crew, Duty::leaving) - replaced;
}

}  // namespace jobq

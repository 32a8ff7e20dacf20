#include "core/workers/dispatcher.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <system_error>

#include "core/jobs/queue_signal.h"

namespace jobq {
namespace {

// Pause after a pass that failed.
constexpr Millis kClaimRetry{500};

/// Most workers reserved by a caller's claim. The number is above 1, so that a claim of just the caller's job shows the
/// queue to be empty.
constexpr std::size_t kServedByCaller = 4;

/// Most workers of an endpoint in a claim of the dispatcher thread. A large endpoint delays the others for no longer
/// than the claim of 64 jobs takes.
constexpr std::size_t kClaimedAtOnce = 64;

}  // namespace

Dispatcher::Dispatcher(const Deps& deps, std::string node, const std::vector<EndpointPtr>& endpoints)
    : deps_(deps), node_(std::move(node)) {
  for (const EndpointPtr& endpoint : endpoints) setEndpoint(endpoint);
  deps_.queueSignal.setClaimer([this](const EndpointId& endpoint) { claimForCaller(endpoint); });
}

void Dispatcher::start() {
  if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { loop(); });
}

void Dispatcher::stop() {
  stopping_ = true;
  deps_.queueSignal.wake();
  if (thread_.joinable()) thread_.join();
  {
    Lock lock(mutex_);
    while (claimingCallers_ > 0) callersDone_.wait(mutex_);
  }
  stopRetired();
}

void Dispatcher::loop() {
  nameThread("dispatcher");
  while (!stopping_) {
    deps_.queueSignal.wait(deps_.clock, nextPassAt_);
    if (!stopping_) runPassAndPlan();
  }
}

bool Dispatcher::runPassIfDue() {
  if (!deps_.queueSignal.consume() && deps_.clock.now() < nextPassAt_.load()) return false;
  runPassAndPlan();
  return true;
}

void Dispatcher::runPassAndPlan() {
  // The pass may miss a worker becoming idle meanwhile; such a worker wakes the thread.
  nextPassAt_ = Instant::max();
  try {
    nextPassAt_ = runPass() ? deps_.clock.now() : nextPass();
  } catch (const std::exception& error) {  // also std::bad_alloc of the storage: the next pass may succeed
    deps_.log.write(LogLevel::error, "dispatcher.storage", error.what());
    nextPassAt_ = deps_.clock.now() + kClaimRetry;
  }
}

// Performs each duty once, with a single claim for all endpoints together. Under a flood there is always a further job
// to claim, so a loop here would keep the other duties waiting. Returns true if there may be more to claim at once.
bool Dispatcher::runPass() {
  noticeStuck();
  rollReleases();
  stopIdleWorkers();
  const bool more = !stopping_ && claimBatch(reserveWorkers(nullptr));
  startWhereNeeded();
  return more;
}

// Runs on the thread of a caller waiting for its job. The dispatcher thread does the rest: more workers, more jobs, a
// failing storage.
void Dispatcher::claimForCaller(const EndpointId& endpoint) {
  {
    Lock lock(mutex_);
    if (stopping_) return;
    ++claimingCallers_;
  }
  bool done = false;
  try {
    done = claimBatch(reserveWorkers(&endpoint)) && !deps_.queueSignal.isSet(endpoint);
  } catch (const std::exception& error) {
    deps_.log.write(LogLevel::error, "dispatcher.storage", error.what());
  }
  if (!done) deps_.queueSignal.wake();
  Lock lock(mutex_);
  --claimingCallers_;
  callersDone_.notifyAll();
}

// Reserves idle workers of the endpoints whose signal is set (of all endpoints, or of `only`), up to a bound for each
// endpoint. No other thread claims for a reserved worker.
std::vector<ClaimWant> Dispatcher::reserveWorkers(const EndpointId* only) {
  std::vector<ClaimWant> wants;
  const std::size_t most = only != nullptr ? kServedByCaller : kClaimedAtOnce;
  Lock lock(mutex_);
  auto at = only != nullptr ? pools_.find(*only) : pools_.begin();
  for (; at != pools_.end(); at = only != nullptr ? pools_.end() : std::next(at)) {
    auto& [id, pool] = *at;
    if (pool.endpoint->paused || pool.retiring || !deps_.queueSignal.isSet(id)) continue;
    ClaimWant want{id, {}};
    for (auto& [worker, info] : pool.workers) {
      if (info.state != WorkerState::idle) continue;
      info.state = WorkerState::reserved;
      want.workers.push_back(worker);
      if (want.workers.size() == most) break;
    }
    if (!want.workers.empty()) wants.push_back(std::move(want));
  }
  return wants;
}

// Makes the workers of `jobs` busy and the other reserved workers idle again.
void Dispatcher::releaseReservations(const std::vector<ClaimWant>& wants, const std::vector<ClaimedJob>& jobs) {
  bool retired = false;  // endpoint retired during the claim: its job has to be stopped
  Lock lock(mutex_);
  for (const ClaimedJob& job : jobs) {
    retired = retired || pools_[job.endpoint].retiring;
    WorkerInfo& info = pools_[job.endpoint].workers[job.worker];
    info.state = WorkerState::busy;
    info.since = job.startedAt;
    info.lease = job.lease;
    info.lowPriority = job.policy.lowPriority;
  }
  for (const ClaimWant& want : wants) {
    for (const WorkerId& worker : want.workers) {
      WorkerInfo& info = pools_[want.endpoint].workers[worker];
      if (info.state == WorkerState::reserved) info.state = WorkerState::idle;
    }
  }
  lock.unlock();
  if (retired) deps_.queueSignal.wake();
}

// Returns true if there were jobs.
bool Dispatcher::claimBatch(const std::vector<ClaimWant>& wants) {
  if (wants.empty()) return false;
  const RunningJobs::Claiming claiming(deps_.running);
  std::vector<ClaimedJob> jobs;
  for (const ClaimWant& want : wants) deps_.queueSignal.clear(want.endpoint);
  try {
    jobs = deps_.storage.leases().claim(wants, Holder{node_, Holder::Kind::process, {}});
  } catch (...) {
    releaseReservations(wants, {});
    for (const ClaimWant& want : wants) deps_.queueSignal.rearm(want.endpoint);
    throw;
  }
  releaseReservations(wants, jobs);
  for (const ClaimWant& want : wants) {
    const auto got = std::count_if(jobs.begin(), jobs.end(),
                                   [&want](const ClaimedJob& job) { return job.endpoint == want.endpoint; });
    if (static_cast<std::size_t>(got) == want.workers.size()) {
      deps_.queueSignal.rearm(want.endpoint);
    } else if (deps_.queueSignal.isSet(want.endpoint)) {
      // A notification came meanwhile, and its thread found these workers reserved.
      deps_.queueSignal.wake();
    }
  }
  const bool any = !jobs.empty();
  executeJobs(std::move(jobs));
  return any;
}

void Dispatcher::executeJobs(std::vector<ClaimedJob> jobs) {
  for (ClaimedJob& job : jobs) {
    const LeaseRef lease = job.lease;
    const EndpointId endpoint = job.endpoint;
    const WorkerId worker = job.worker;
    try {
      deps_.executor.assign(std::move(job));
    } catch (const std::bad_alloc&) {
      releaseJob(lease);
      deps_.queueSignal.rearm(endpoint);
      workerReady(endpoint, worker);
    }
  }
}

// Returns a job to the queue for which the worker had no memory. Without the return the job would stay claimed without
// a worker.
void Dispatcher::releaseJob(const LeaseRef& lease) {
  try {
    deps_.storage.leases().release(std::vector{lease});
    deps_.log.write(LogLevel::error, "dispatcher.memory",
                    lease.job + " was returned to the queue: no memory to hand it to its worker");
  } catch (const StorageError& error) {
    deps_.log.write(LogLevel::error, "dispatcher.memory",
                    lease.job + " stays IN_PROGRESS until its execution timeout: " + error.what());
  }
}

void Dispatcher::stopRun(const LeaseRef& lease) {
  // A thread about to run the attempt sees the stop (RunningJobs::Claiming) and does not begin.
  deps_.running.stop(lease);
  bool early = false;
  {
    Lock lock(mutex_);
    for (auto& [id, pool] : pools_) {
      for (auto& [worker, info] : pool.workers) {
        if (info.state != WorkerState::busy || info.lease != lease || info.stuckFrom != Instant::max()) continue;
        info.stuckFrom = deps_.clock.now() + pool.endpoint->stopGrace;
        early = info.stuckFrom < nextPassAt_.load();
      }
    }
  }
  if (early) deps_.queueSignal.wake();
}

}  // namespace jobq

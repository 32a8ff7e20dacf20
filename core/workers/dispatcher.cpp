#include "core/workers/dispatcher.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "core/base/periodic.h"
#include "core/base/repeated_call.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/returned_jobs.h"
#include "core/workers/run/input_memory.h"
#include "jobq/error.h"

namespace jobq {
namespace {

// Pause after a pass that failed, and between the passes of a fenced node.
constexpr Millis kClaimRetry{500};

/// Most workers reserved by a caller's claim. The number is above 1, so that a claim of just the caller's job shows the
/// queue to be empty.
constexpr std::size_t kServedByCaller = 4;

/// Most workers of an endpoint in a claim of the dispatcher thread. A large endpoint delays the others for no longer
/// than the claim of 64 jobs takes.
constexpr std::size_t kClaimedAtOnce = 64;

// Sets the signals again: the queues may have jobs that the claim has not taken.
void rearm(QueueSignal& queueSignal, const std::vector<ClaimWant>& wants) {
  for (const ClaimWant& want : wants) queueSignal.rearm(want.endpoint);
}

// Returns a claimed job to the queue, if the worker has to leave or the node has begun a new life meanwhile. A failure
// leaves the job IN_PROGRESS until its execution timeout or the end of the life.
void returnJobToQueue(Storage& storage, Log& log, const LeaseRef& lease) noexcept {
  try {
    releaseAll(storage.leases(), {&lease, 1});
  } catch (const std::exception& error) {
    log.write(LogLevel::error, "dispatcher.storage", error.what());
  }
}

}  // namespace

Dispatcher::Dispatcher(const Deps& deps) : deps_(deps), earlyRuns_(deps) {
  deps_.claimer.bind(*this);
  deps_.running.inputs().setSignal(deps_.queueSignal);
}

void Dispatcher::start() {
  if (thread_.joinable() || stopping_) return;
  thread_ = std::thread([this] {
    nameThread("dispatcher");
    while (!stopping_) {
      deps_.queueSignal.wait(deps_.clock, deps_.supervisor.nextPassAt());
      if (!stopping_) runPassAndPlan();
    }
  });
}

void Dispatcher::stop() {
  if (stopping_.exchange(true)) return;
  deps_.supervisor.stopStarting();
  deps_.queueSignal.wake();
  if (thread_.joinable()) thread_.join();
  callers_.close();
  giveUpUnanswered();
  deps_.supervisor.stopRetired();
}

bool Dispatcher::runPassIfDue() {
  if (!deps_.queueSignal.consume() && deps_.clock.now() < deps_.supervisor.nextPassAt()) return false;
  runPassAndPlan();
  return true;
}

void Dispatcher::runPassAndPlan() {
  // The pass may miss a worker becoming idle meanwhile; such a worker wakes the thread.
  deps_.supervisor.planPass(Instant::max());
  try {
    const Found found = runPass();
    Instant next = deps_.pools.endPass().nextTaskAt;
    // A node that may not claim, or has no room for inputs, leaves the signals set. Without a later time the idle time
    // of the remaining workers would be due again at once. A job with a small input may arrive before the inputs
    // without room.
    const Instant retry = deps_.clock.now() + kClaimRetry;
    if (!deps_.node.mayClaim()) next = std::max(next, retry);
    if (found.leavesJobs) next = retry;
    deps_.supervisor.planPass(found.hasJobs ? deps_.clock.now() : next);
  } catch (const std::exception& error) {  // also std::bad_alloc of the storage: the next pass may succeed
    deps_.log.write(LogLevel::error, "dispatcher.storage", error.what());
    deps_.supervisor.planPass(deps_.clock.now() + kClaimRetry);
  }
}

// Performs each task once, with a single claim for all endpoints together. Under a flood there is always a further job
// to claim, so a loop here would keep the other tasks waiting. If there were jobs, there may be more to claim at once.
Dispatcher::Found Dispatcher::runPass() {
  deps_.supervisor.noticeStuck();
  deps_.supervisor.rollReleases();
  deps_.supervisor.stopIdleWorkers();
  Found found;
  performAll(
      [this] {
        if (!stopping_ && !deps_.node.isFenced()) askForUnanswered();
      },
      [&] {
        if (!stopping_) found = claimBatch(deps_.pools.reserveWorkers({nullptr, kClaimedAtOnce}));
        if (!deps_.node.isDrained()) deps_.supervisor.startWhereNeeded();
      });
  return found;
}

// Runs on the thread of a caller waiting for its job. The dispatcher thread does the rest: more workers, more jobs, a
// failing storage.
void Dispatcher::claimForCaller(const EndpointId& endpoint) {
  const OutsideThreads::Entry caller(callers_);
  if (!caller.isAllowed()) return;
  bool done = false;
  try {
    const Found found = claimBatch(deps_.pools.reserveWorkers({&endpoint, kServedByCaller}));
    done = found.hasJobs && !deps_.queueSignal.isSet(endpoint);
  } catch (const std::exception& error) {
    deps_.log.write(LogLevel::error, "dispatcher.storage", error.what());
  }
  if (!done) deps_.queueSignal.wake();
}

std::optional<InsertResult> Dispatcher::insertForCaller(JobSpec& job, const QueuePolicy& policy,
                                                        const std::optional<Idempotency>& idempotency) {
  if (!deps_.storage.capabilities().has(Capability::insertAndClaim) || !deps_.node.mayClaim()) return std::nullopt;
  const OutsideThreads::Entry caller(callers_);
  if (!caller.isAllowed()) return std::nullopt;
  auto wants = deps_.pools.reserveWorkers({&job.endpoint, kServedByCaller, true});
  if (wants.empty()) return std::nullopt;
  const FusedClaim fused{wants.front(), deps_.node.holder(), callIds_.next()};
  std::list<Claim> claims;  // a single element, which unanswered_ takes without an allocation
  const Claim& claim = claims.emplace_back(Claim{std::move(wants), fused.id, fused.holder});
  const RunningJobs::Claiming claiming(deps_.running);
  InsertedAndClaimed done;
  deps_.queueSignal.clear(job.endpoint);
  try {
    done = deps_.storage.insertAndClaim(std::move(job), policy, idempotency, fused);
  } catch (const OutcomeUnknown&) {
    keepUnanswered(claims);
    deps_.queueSignal.wake();
    return std::nullopt;
  } catch (const StorageError&) {  // the step has changed nothing
    acceptOffered(claim, {});
    throw;
  } catch (...) {  // such as std::bad_alloc, perhaps after the step
    keepUnanswered(claims);
    deps_.queueSignal.wake();
    throw;
  }
  try {
    acceptOffered(claim, std::move(done.claimed));
  } catch (const std::exception& error) {  // the job is stored, and its caller waits for the job
    deps_.log.write(LogLevel::error, "dispatcher.storage", error.what());
    rearm(deps_.queueSignal, claim.wants);
    deps_.queueSignal.wake();
  }
  return std::move(done.inserted);
}

std::shared_ptr<DeferredInsert> Dispatcher::runForCaller(const JobSpec& job, const QueuePolicy& policy) {
  const OutsideThreads::Entry caller(callers_);
  return caller.isAllowed() ? earlyRuns_.begin(job, policy) : nullptr;
}

// Hands the jobs of a caller's claim to workers. The dispatcher thread claims the remaining jobs.
void Dispatcher::acceptOffered(const Claim& claim, std::vector<ClaimedJob> jobs) {
  if (deps_.node.holder() != claim.holder) {  // the life has ended meanwhile, and other nodes may have the jobs
    rearm(deps_.queueSignal, claim.wants);
    giveUp(claim);
  } else if (jobs.empty()) {
    rearm(deps_.queueSignal, claim.wants);
    deps_.pools.concludeReservations(claim.wants, {});
  } else {
    acceptJobs(claim.wants, std::move(jobs));
    if (!deps_.queueSignal.isSet(claim.wants.front().endpoint)) return;
  }
  deps_.queueSignal.wake();
}

std::optional<FinishedRun> Dispatcher::finishAndClaim(const ClaimedJob& job, const EndedAttempt& end, bool isTold) {
  const bool isUnsynced = !isTold && deps_.storage.capabilities().has(Capability::finishUnsynced);
  const bool fuses = deps_.storage.capabilities().has(Capability::finishAndClaim);
  if (!(isUnsynced || fuses) || !deps_.node.mayClaim()) return std::nullopt;
  const OutsideThreads::Entry caller(callers_);
  if (!caller.isAllowed()) return std::nullopt;
  auto wants = fuses ? deps_.pools.reserveWorkers({&job.endpoint, 1, false, &job.worker}) : std::vector<ClaimWant>();
  if (wants.empty() && !isUnsynced) return std::nullopt;
  const Holder holder = deps_.node.holder();
  std::optional<FusedClaim> claim;
  if (!wants.empty()) claim = {std::move(wants.front()), holder, callIds_.next()};
  const RunningJobs::Claiming claiming(deps_.running);
  FinishResult done =
      deps_.storage.leases().finish({&end, 1}, isUnsynced ? Durability::unsynced : Durability::synced, claim);
  FinishedRun run{done.reports.front(), false};
  for (const ClaimedJob& next : done.claimed) {  // one at most
    try {
      run.hasNext = deps_.node.holder() == holder && deps_.pools.recordReady(next.endpoint, next.worker, &next).stays;
    } catch (const std::exception& error) {  // the outcome is stored: a repeated report would claim another job
      deps_.log.write(LogLevel::error, "dispatcher.memory", error.what());
    }
    if (run.hasNext) break;
    returnJobToQueue(deps_.storage, deps_.log, next.lease);
    deps_.queueSignal.rearm(next.endpoint);
    deps_.queueSignal.wake();
  }
  if (run.hasNext) assignJobs(std::move(done.claimed));
  return run;
}

// Memory for the inputs is reserved before the claim. Without room, and at an endpoint without a rest of its part, the
// claim is for jobs with small inputs.
Dispatcher::Found Dispatcher::claimBatch(std::vector<ClaimWant> wants) {
  InputMemory& memory = deps_.running.inputs();
  std::vector<ClaimWant> all;
  std::vector<ClaimWant> small;
  for (ClaimWant& want : wants) (memory.hasUsedUp(want.endpoint) ? small : all).push_back(std::move(want));
  Found found;
  performAll(
      [&] {
        if (all.empty()) return;
        const auto room = memory.reserveForClaim();
        claimWithin(std::move(all), room ? InputMemory::kOfAClaim : 0, found);
      },
      [&] { claimWithin(std::move(small), 0, found); });
  return found;
}

void Dispatcher::claimWithin(std::vector<ClaimWant> wants, std::uint64_t mostBytes, Found& found) {
  if (wants.empty()) return;
  if (!deps_.node.mayClaim()) return deps_.pools.concludeReservations(wants, {});
  std::list<Claim> claims;  // a single element, which unanswered_ takes without an allocation
  const Claim& claim = claims.emplace_back(Claim{std::move(wants), callIds_.next(), deps_.node.holder()});
  const RunningJobs::Claiming claiming(deps_.running);
  ClaimResult claimed;
  for (const ClaimWant& want : claim.wants) deps_.queueSignal.clear(want.endpoint);
  try {
    claimed = claimJobs(claim, mostBytes);
  } catch (const OutcomeUnknown&) {
    keepUnanswered(claims);
    throw;
  } catch (const StorageError&) {  // the step has changed nothing
    rearm(deps_.queueSignal, claim.wants);
    deps_.pools.concludeReservations(claim.wants, {});
    throw;
  } catch (...) {  // such as std::bad_alloc, perhaps after the step
    keepUnanswered(claims);
    throw;
  }
  if (deps_.node.holder() != claim.holder) {  // the life has ended meanwhile, and other nodes may have the jobs
    rearm(deps_.queueSignal, claim.wants);
    giveUp(claim);
    return;
  }
  if (acceptJobs(claim.wants, std::move(claimed.jobs))) found.hasJobs = true;
  // Not before: acceptJobs() would wake the dispatcher, although there is no room yet.
  for (const EndpointId& endpoint : claimed.left) deps_.queueSignal.rearm(endpoint);
  if (!claimed.left.empty()) found.leavesJobs = true;
}

void Dispatcher::keepUnanswered(std::list<Claim>& claims) {
  for (const Claim& claim : claims) rearm(deps_.queueSignal, claim.wants);
  Lock lock(mutex_);
  unanswered_.splice(unanswered_.end(), claims);
}

// Claims jobs, and asks for the jobs of the claim if the answer does not come. Throws OutcomeUnknown if the storage
// answers neither call.
ClaimResult Dispatcher::claimJobs(const Claim& claim, std::uint64_t mostBytes) {
  try {
    return deps_.storage.leases().claim(claim.wants, claim.holder, claim.id, mostBytes);
  } catch (const OutcomeUnknown&) {
    try {
      return {readJobs(claim), {}};
    } catch (const StorageError& error) {
      throw OutcomeUnknown(error.what());
    }
  }
}

// Returns the jobs of a claim without an answer. Sets the signals, because a short or empty answer does not show that
// the queues are empty: the claim may never have happened.
std::vector<ClaimedJob> Dispatcher::readJobs(const Claim& claim) {
  std::vector<ClaimedJob> jobs = deps_.storage.leases().claimed(claim.wants, claim.id);
  rearm(deps_.queueSignal, claim.wants);
  return jobs;
}

// Asks for the jobs of each claim without an answer. Claims that stay without an answer wait for the next pass. The
// jobs of a claim of an earlier life return to the queue. Throws the first exception after all claims.
void Dispatcher::askForUnanswered() {
  std::list<Claim> asked;
  {
    Lock lock(mutex_);
    asked.swap(unanswered_);
  }
  std::exception_ptr fault;
  while (!asked.empty()) {
    std::list<Claim> claim;
    claim.splice(claim.end(), asked, asked.begin());
    if (deps_.node.holder() != claim.front().holder) {
      giveUp(claim.front());
      continue;
    }
    const RunningJobs::Claiming claiming(deps_.running);
    try {
      std::vector<ClaimedJob> jobs = readJobs(claim.front());
      const std::vector<ClaimWant> wants = std::move(claim.front().wants);
      claim.clear();
      acceptJobs(wants, std::move(jobs));
    } catch (...) {
      if (!fault) fault = std::current_exception();
      keepUnanswered(claim);  // no effect if the storage has answered
    }
  }
  if (fault) std::rethrow_exception(fault);
}

// Returns the jobs of claims without an answer to the queues. The jobs of a claim that stays unanswered are IN_PROGRESS
// until the end of the node's life.
void Dispatcher::giveUpUnanswered() {
  std::list<Claim> claims;
  {
    Lock lock(mutex_);
    claims.swap(unanswered_);
  }
  for (const Claim& claim : claims) giveUp(claim);
}

// Returns the jobs of the claim to their queues, and frees the reserved workers.
void Dispatcher::giveUp(const Claim& claim) {
  try {
    std::vector<LeaseRef> leases;
    for (const ClaimedJob& job : readJobs(claim)) leases.push_back(job.lease);
    releaseAll(deps_.storage.leases(), leases);
  } catch (const std::exception& error) {
    deps_.log.write(LogLevel::error, "dispatcher.storage", error.what());
  }
  deps_.pools.concludeReservations(claim.wants, {});
}

// Hands the jobs of a claim to their workers and frees the other reserved workers. Returns true if there are jobs.
bool Dispatcher::acceptJobs(const std::vector<ClaimWant>& wants, std::vector<ClaimedJob> jobs) {
  deps_.pools.concludeReservations(wants, jobs);
  for (const ClaimWant& want : wants) {
    const auto got = std::count_if(jobs.begin(), jobs.end(),
                                   [&want](const ClaimedJob& job) { return job.endpoint == want.endpoint; });
    if (static_cast<std::size_t>(got) == want.workers.size()) {
      deps_.queueSignal.rearm(want.endpoint);
    } else if (deps_.queueSignal.isSet(want.endpoint)) {
      // A notification came meanwhile, and the notified thread found the workers reserved.
      deps_.queueSignal.wake();
    }
  }
  if (jobs.empty()) return false;
  struct AtEnd {
    Executor& executor;
    ~AtEnd() { executor.sendAssigned(); }
  } const atEnd{deps_.executor};
  assignJobs(std::move(jobs));
  return true;
}

void Dispatcher::assignJobs(std::vector<ClaimedJob> jobs) {
  for (ClaimedJob& job : jobs) {
    const LeaseRef lease = job.lease;
    const EndpointId endpoint = job.endpoint;
    const WorkerId worker = job.worker;
    try {
      deps_.executor.assign(std::move(job));
      continue;
    } catch (const std::bad_alloc&) {
      releaseWithoutWorker(deps_.storage, deps_.log, lease);
    }
    try {
      deps_.queueSignal.rearm(endpoint);
      deps_.supervisor.workerReady(endpoint, worker);
    } catch (const std::exception& error) {  // the other claimed jobs still need their workers
      deps_.log.write(LogLevel::error, "dispatcher.memory", error.what());
    }
  }
}

}  // namespace jobq

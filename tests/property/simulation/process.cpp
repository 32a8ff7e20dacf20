#include "process.h"

#include <algorithm>
#include <utility>

namespace jobq::model {
namespace {

constexpr Millis kSecond{1'000};
constexpr std::size_t kMostCalls = 8;  // of waiting callers

}  // namespace

void Process::SweepTasks::swept(const SweepResult& result) {
  reports_.announce(result);
  for (const LeaseRef& lease : result.stopped) supervisor_.stopRun(lease);
}

void Process::SweepTasks::sweepUnanswered() {
  reports_.announceAll();
  supervisor_.stopEndedRuns();
}

Process::Process(World& world, const std::string& node, HostClock& clock, Storage& storage, int number)
    : world_(world),
      clock_(clock),
      log_(world.rules.findings),
      queueSignal_({"kept", "scaled", "single"}),
      claimer_(queueSignal_),
      completions_(clock),
      jobs_(storage, queueSignal_, claimer_, completions_, deliveries_),
      later_(storage, queueSignal_),
      reports_(storage, queueSignal_, claimer_, completions_, deliveries_),
      sweeper_(storage, clock, log_),
      workers_({world, node, clock, running_, reports_, sweeper_}),
      pools_({queueSignal_, clock, log_}, world.endpoints),
      life_(storage, node),
      sameLife_(storage, life_),
      unfenced_(sameLife_, node),
      supervisor_({pools_, storage, queueSignal_, workers_, running_, life_, log_},
                  node + "-" + std::to_string(number)),
      sweepTasks_(reports_, supervisor_),
      inserts_(storage, completions_, clock, log_),
      dispatcher_({pools_, supervisor_, storage, queueSignal_, claimer_, workers_, running_, inserts_,
                   world.plan.twin == Twin::fencedClaims ? unfenced_ : life_, clock, log_}),
      keeper_({life_, storage, pools_, supervisor_, running_, queueSignal_, clock, log_}),
      poller_({storage, completions_, queueSignal_, clock, log_}) {
  sweeper_.setListener(sweepTasks_);
  for (Instant& due : dueAt_) due = clock_.now() + Millis(world_.chance(1'000));
  for (const EndpointPtr& endpoint : world.endpoints) {
    for (int i = 0; i < DeferredInserts::kProof; ++i) inserts_.noteRun(endpoint->spec.id, true);
  }
}

void Process::start() {
  beginLife();
  stage_ = Stage::sweeping;
  (void)sweeper_.endOverdue();
  stage_ = Stage::running;
}

// A job that runs before the insert is inserted in the life in which the run began.
void Process::beginLife() {
  inserts_.storeAll();
  keeper_.join();
  unfenced_.join();
}

void Process::stop() {
  dispatcher_.stop();
  inserts_.storeAll();
  workers_.stopAll();
  stage_ = Stage::leaving;
  try {
    keeper_.leave();
  } catch (const StorageError& error) {  // the life ends by time
    world_.failed(error);
  }
}

// The fence is a separate thread without a slow call, so the fence is never late here. Beats are never late either,
// because a late beat is a slow call. The order of the threads is random.
void Process::step() {
  if (stage_ == Stage::joining || stage_ == Stage::leaving) return;
  std::array<Thread, kThreads> order{kBeats, kFence, kRuns, kChanges, kSweeper, kDispatcher, kWorkers, kCallers};
  std::shuffle(order.begin(), order.end(), world_.random);
  for (const Thread thread : order) {
    const bool keepsLease = thread == kBeats || thread == kFence || thread == kRuns;
    if (stage_ == Stage::sweeping && !keepsLease) continue;
    const bool isPunctual = world_.isCalm || thread == kFence || thread == kBeats || thread == kWorkers;
    if (isPunctual || world_.chance(8) != 0) runThread(thread);
  }
}

void Process::runThread(Thread thread) {
  if (isBusy_[thread] || clock_.now() < dueAt_[thread]) return;
  isBusy_[thread] = thread != kWorkers;  // each worker is a thread, and a call of one holds up no other
  try {
    work(thread);
  } catch (const StorageError&) {  // like Periodic: the next run comes
  }
  isBusy_[thread] = false;
}

void Process::work(Thread thread) {
  switch (thread) {
    case kBeats:
      dueAt_[thread] = clock_.now() + kSecond;
      keeper_.beat();
      unfenced_.join();
      return;
    case kFence:
      if (world_.plan.twin != Twin::noSelfFencing) keeper_.checkFence();
      return;
    case kRuns: dueAt_[thread] = clock_.now() + kSecond; return keeper_.followRuns();
    case kChanges:
      if (world_.plan.twin != Twin::newsLost) (void)poller_.poll();
      return;
    case kSweeper: dueAt_[thread] = clock_.now() + kSecond; return sweeper_.sweepAll();
    case kDispatcher:
      for (int passes = 0; passes < 3 && dispatcher_.runPassIfDue();) ++passes;
      return;
    case kWorkers: return workers_.step();
    case kCallers: return resumeCalls();
    case kThreads: return;
  }
}

void Process::await(JobKey job, std::unique_ptr<JobWait> wait) {
  poll({++lastCall_, std::move(job), clock_.now() + kLongestWait, std::move(wait)});
}

void Process::poll(Call call) {
  try {
    if (const auto ended = call.wait->poll({{&resumed_, call.id}})) {
      return world_.rules.jobs.answered(life_.name(), call.job.id, ended->job);
    }
  } catch (const StorageError& error) {  // the caller reads 503
    return world_.failed(error);
  }
  calls_.push_back(std::move(call));
  if (calls_.size() > kMostCalls) calls_.pop_front();
}

void Process::resumeCalls() {
  std::deque<Call> calls = std::exchange(calls_, {});
  for (Call& call : calls) {
    if (resumed_.extractResumed(call.id) || call.until <= clock_.now()) {
      poll(std::move(call));
    } else {
      calls_.push_back(std::move(call));
    }
  }
}

std::vector<JobKey> Process::awaited() const {
  std::vector<JobKey> jobs;
  for (const Call& call : calls_) jobs.push_back(call.job);
  return jobs;
}

void Process::check() const {
  for (const EndpointPtr& endpoint : world_.endpoints) {
    if (endpoint->release) workers_.check(*endpoint, pools_.status(endpoint->spec.id).counts);
  }
}

}  // namespace jobq::model

#include "nodes_process.h"

#include <algorithm>
#include <utility>

#include "jobq/transitions.h"

namespace jobq::model {
namespace {

constexpr Millis kSecond{1'000};

}  // namespace

void NodeProcess::SweepTasks::swept(const SweepResult& result) {
  reports_.announce(result);
  for (const LeaseRef& lease : result.stopped) supervisor_.stopRun(lease);
}

void NodeProcess::SweepTasks::sweepUnanswered() {
  reports_.announceAll();
  supervisor_.stopEndedRuns();
}

NodeProcess::NodeProcess(NodesWorld& world, const std::string& node, HostClock& clock, Storage& storage, int number)
    : world_(world),
      clock_(clock),
      log_(world.judge),
      queueSignal_({"kept", "scaled", "single"}),
      claimer_(queueSignal_),
      completions_(clock),
      jobs_(storage, queueSignal_, claimer_, completions_, deliveries_),
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
                   world.flaws.claimsWhenFenced ? unfenced_ : life_, clock, log_}),
      keeper_({life_, storage, pools_, supervisor_, running_, queueSignal_, clock, log_}),
      poller_({storage, completions_, queueSignal_, clock, log_}) {
  sweeper_.setListener(sweepTasks_);
  for (Instant& due : dueAt_) due = clock_.now() + Millis(world_.chance(1'000));
}

void NodeProcess::start() {
  keeper_.join();
  unfenced_.join();
  stage_ = Stage::sweeping;
  (void)sweeper_.endOverdue();
  stage_ = Stage::running;
}

void NodeProcess::stop() {
  dispatcher_.stop();
  workers_.stopAll();
  stage_ = Stage::leaving;
  try {
    keeper_.leave();
  } catch (const StorageError&) {  // the life ends by time
  }
}

// The fence is a separate thread without a slow call, so the fence is never late here. Beats are never late either,
// because a late beat is a slow call. The order of the threads is random.
void NodeProcess::step() {
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

void NodeProcess::runThread(Thread thread) {
  if (isBusy_[thread] || clock_.now() < dueAt_[thread]) return;
  isBusy_[thread] = thread != kWorkers;  // each worker is a thread, and a call of one holds up no other
  try {
    work(thread);
  } catch (const StorageError&) {  // like Periodic: the next run comes
  }
  isBusy_[thread] = false;
}

void NodeProcess::work(Thread thread) {
  switch (thread) {
    case kBeats:
      dueAt_[thread] = clock_.now() + kSecond;
      keeper_.beat();
      unfenced_.join();
      return;
    case kFence:
      if (!world_.flaws.neverChecksFence) keeper_.checkFence();
      return;
    case kRuns: dueAt_[thread] = clock_.now() + kSecond; return keeper_.followRuns();
    case kChanges:
      if (!world_.flaws.neverPolls) (void)poller_.poll();
      return;
    case kSweeper: dueAt_[thread] = clock_.now() + kSecond; return sweeper_.sweepAll();
    case kDispatcher:
      for (int passes = 0; passes < 3 && dispatcher_.runPassIfDue();) ++passes;
      return;
    case kWorkers: return workers_.step();
    case kCallers: return stepCallers();
    case kThreads: return;
  }
}

void NodeProcess::await(const JobKey& job) { callers_.emplace_back(completions_, job); }

// A caller reads the job at the begin of the call and after each event. After a failed read the caller gets 503.
void NodeProcess::stepCallers() {
  for (auto at = callers_.begin(); at != callers_.end();) {
    Caller& caller = *at;
    const bool hasEvent = caller.waiter.poll(Instant::min(), {{nullptr, 0}}) == CompletionNotifier::Progress::event;
    bool isAnswered = false;
    if (std::exchange(caller.isNew, false) || hasEvent) {
      try {
        const std::optional<Job> job = jobs_.find(caller.job, nullptr).job;
        isAnswered = !job || terminal(job->state);
      } catch (const StorageError&) {
        isAnswered = true;
      }
    }
    if (isAnswered) world_.judge.jobs.answered(life_.name(), caller.job.id);
    at = isAnswered ? callers_.erase(at) : std::next(at);
  }
}

std::vector<JobKey> NodeProcess::awaited() const {
  std::vector<JobKey> jobs;
  for (const Caller& caller : callers_) jobs.push_back(caller.job);
  return jobs;
}

void NodeProcess::check() const {
  for (const EndpointPtr& endpoint : world_.endpoints) {
    workers_.check(endpoint->spec.id, pools_.status(endpoint->spec.id).counts);
  }
}

}  // namespace jobq::model

#include "core/workers/lease_keeper.h"

#include <string>
#include <vector>

#include "core/base/periodic.h"
#include "core/base/repeated_call.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/returned_jobs.h"

namespace jobq {
namespace {

constexpr Millis kBeatInterval{1'000};
constexpr Millis kFenceInterval{250};
constexpr Millis kSharePause{3'000};

/// Time between the fence and the earliest moment at which another node may run the jobs.
constexpr Millis kFenceMargin{5'000};

}  // namespace

LeaseKeeper::LeaseKeeper(const Deps& deps)
    : deps_(deps),
      leaseLife_(deps.storage.leaseLife()),
      lastBeat_(deps.clock.now()),
      beats_("lease-beats", deps.clock, deps.log, kBeatInterval, beatTask_),
      fences_("lease-fence", deps.clock, deps.log, kFenceInterval, fenceTask_),
      runs_("lease-runs", deps.clock, deps.log, kBeatInterval, runsTask_) {}

void LeaseKeeper::join() {
  const Instant asked = deps_.clock.now();
  deps_.node.join();
  {
    Lock lock(mutex_);
    lastBeat_ = asked;
  }
  if (leaseLife_) countNodes();
}

void LeaseKeeper::start() {
  if (!leaseLife_) return;
  beats_.start();
  fences_.start();
  runs_.start();
}

void LeaseKeeper::stop() {
  fences_.stop();
  runs_.stop();
  beats_.stop();
}

void LeaseKeeper::leave() {
  if (!leaseLife_ || deps_.node.holder().epoch == 0) return;
  performAll([this] { releaseFenced(); }, [this] { deps_.node.leave(); });
}

void LeaseKeeper::beat() {
  if (isReplaced_) return;
  const Instant asked = deps_.clock.now();
  if (isJoining_) return beginLife(asked);
  const Holder holder = deps_.node.holder();
  std::vector<EndpointWorkers> workers;
  for (PoolSummary& pool : deps_.pools.summaries()) {
    // The other nodes start workers in place of the idle workers of a draining node.
    if (deps_.node.isDrained()) pool.counts = {.running = pool.counts.running, .unhealthy = pool.counts.unhealthy};
    if (pool.counts != WorkerCounts{}) workers.push_back({std::move(pool.endpoint), pool.counts});
  }
  switch (callRepeatedly([&] { return deps_.storage.nodes().beat(holder, workers); })) {
    case BeatResult::extended:
      noteBeat(asked);
      releaseFenced();
      return;
    case BeatResult::ended:
      fence(When::now, "another node has ended the life of this node, because it did not beat in time");
      return beginLife(asked);
    case BeatResult::replaced:
      isReplaced_ = true;
      fence(When::now,
            "another server has joined the storage under the same node.name; give this one another node.name and "
            "restart it");
      return;
  }
}

// Notes a successful beat or join. Ends a fence, except after an answer so late that the life may end before the next
// beat. The next beat decides then.
void LeaseKeeper::noteBeat(Instant asked) {
  {
    Lock lock(mutex_);
    lastBeat_ = asked;
    if (!deps_.node.isFenced() || isOverdue()) return;
    deps_.running.unfence();
    deps_.node.setFenced(false);
  }
  deps_.queueSignal.notifyAll();
  deps_.log.write(LogLevel::information, "node.resumed", "the storage answers again: the node claims jobs");
}

// The life goes on, so no other node has taken back the jobs of the stopped handlers. An attempt of an earlier life is
// stale.
void LeaseKeeper::releaseFenced() {
  const std::vector<LeaseRef> ended = deps_.running.endedFenced();
  if (ended.empty()) return;
  releaseAll(deps_.storage.leases(), ended);
  deps_.running.forgetFenced(ended.size());
  deps_.queueSignal.notifyAll();
}

// The jobs of the former life are taken back, or will be by the next sweep. A join without an answer may have happened,
// so beginLife() repeats the join before the next beat: a beat of the former life would find the node replaced.
void LeaseKeeper::beginLife(Instant asked) {
  isJoining_ = true;
  deps_.node.join();
  isJoining_ = false;
  noteBeat(asked);
}

void LeaseKeeper::followRuns() {
  deps_.supervisor.stopEndedRuns();
  if (deps_.clock.now() >= shareDueAt_) countNodes();
  deps_.queueSignal.wake();
}

void LeaseKeeper::countNodes() {
  const Instant asked = deps_.clock.now();
  shareDueAt_ = asked + kSharePause;
  const std::uint64_t own = deps_.node.holder().epoch;
  NodeLives lives{asked, deps_.storage.nodes().nodes()};
  NodeShare share{0, 0};
  for (const NodeInfo& node : lives.nodes) {
    if (!node.isAlive) continue;
    if (node.epoch != own && deps_.node.isDrained(node.name)) continue;  // other nodes do the work
    if (node.epoch == own) share.index = share.nodes;
    ++share.nodes;
  }
  deps_.node.setLives(std::move(lives));
  if (share.nodes == 0) return;  // the node's life has ended, too: the next beat decides
  deps_.node.setShare(share);
  deps_.pools.setShare(share);
}

bool LeaseKeeper::isOverdue() const {
  return leaseLife_ && deps_.clock.now() - lastBeat_ >= *leaseLife_ - kFenceMargin;
}

void LeaseKeeper::checkFence() {
  if (leaseLife_ && !deps_.node.isFenced()) fence(When::ifOverdue, "the storage has not answered a beat for too long");
}

// Both flags of the fence change under the mutex, so that a beat in between cannot end half a fence. Handlers are
// stopped without the mutex.
void LeaseKeeper::fence(When when, const char* reason) {
  std::vector<LeaseRef> stopped;
  bool wasFenced = false;
  {
    Lock lock(mutex_);
    if (when == When::ifOverdue && !isOverdue()) return;
    stopped = deps_.running.fence();
    wasFenced = deps_.node.isFenced();
    deps_.node.setFenced(true);
  }
  for (const LeaseRef& lease : stopped) deps_.supervisor.stopRun(lease);
  if (wasFenced) return;
  deps_.log.write(LogLevel::error, "node.fenced",
                  std::string(reason) + ": " + std::to_string(stopped.size()) +
                      " handlers are stopped, and the node claims no jobs until it has a life again");
}

}  // namespace jobq

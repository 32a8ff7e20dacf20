#include "core/jobs/job_wait.h"

#include <algorithm>
#include <utility>

#include "core/jobs/claimer.h"
#include "core/jobs/deferred_insert.h"
#include "core/jobs/job_service.h"
#include "core/jobs/queue_signal.h"
#include "core/model/output_quota.h"
#include "jobq/transitions.h"

namespace jobq {
namespace {

using Progress = CompletionNotifier::Progress;

constexpr Millis kGatherLeast{100};
constexpr Millis kGatherMost{1'000};
constexpr Millis kGatherAStream{5};  // 200 requests a second, the rate limit of /stream
constexpr std::size_t kGathered = 1UL << 20;

// Returns true if a wait that was over has ended: at `deadline`, or before `until`, by the client or the end of the
// server. Otherwise the caller tries again whether there is room.
bool isOver(const CompletionNotifier& completions, Instant until, Instant deadline, const WaitingCaller& caller) {
  return until == deadline || caller.hasLeft || completions.now() < until;
}

// Gives back what a read has drawn whose result is not returned: a wait may last for minutes.
void giveBackRoom(const WaitingCaller& caller) {
  if (caller.room != nullptr) (void)caller.room->draw(0);
}

}  // namespace

JobWait::JobWait(const Deps& deps, JobKey key, Millis wait)
    : deps_(deps), key_(std::move(key)), deadline_(deps.completions.now() + wait), waiter_(deps.completions, key_) {}

JobWait::~JobWait() {
  if (unclaimed_) deps_.queueSignal.notify(key_.endpoint, *unclaimed_);
}

// Reading a new job before the first wait would cost every short job one more query.
void JobWait::noteSubmitted(bool lowPriority) noexcept {
  unclaimed_ = lowPriority;
  readsFirst_ = false;
}

void JobWait::noteDeferred(std::shared_ptr<DeferredInsert> insert) noexcept {
  insert_ = std::move(insert);
  readsFirst_ = false;
}

std::optional<JobWait::Result> JobWait::poll(const WaitingCaller& caller) {
  if (unclaimed_ && deps_.queueSignal.set(key_.endpoint, *std::exchange(unclaimed_, std::nullopt))) {
    deps_.claimer.claimForCaller(key_.endpoint);
  }
  for (;;) {
    const Instant until = std::min(deadline_, roomAt_.value_or(deadline_));
    const Progress progress = readsFirst_ ? Progress::event : waiter_.poll(until, caller);
    if (progress == Progress::pending) return std::nullopt;
    readsFirst_ = false;
    if (insert_) insert_->store();
    Result result = deps_.jobs.find(key_, caller.room);
    if (progress == Progress::over && isOver(deps_.completions, until, deadline_, caller)) return result;
    const bool hasEnded = !result.job || terminal(result.job->state);
    if (hasEnded && result.hasRoom) return result;
    roomAt_.reset();
    giveBackRoom(caller);
    if (hasEnded) roomAt_ = deps_.completions.now() + deps_.completions.roomPause();
  }
}

bool JobWait::mayAwaitRoom() {
  const Instant now = deps_.completions.now();
  roomAt_ = now + deps_.completions.roomPause();
  return now < deadline_;
}

ChunkWait::ChunkWait(JobService& jobs, CompletionNotifier& completions, ChunkAsk ask)
    : jobs_(jobs),
      completions_(completions),
      ask_(std::move(ask)),
      deadline_(completions.now() + ask_.wait),
      waiter_(completions, ask_.key, CompletionNotifier::Interest::chunks) {}

std::optional<ChunkWait::Result> ChunkWait::poll(const WaitingCaller& caller) {
  for (;;) {
    switch (step_) {
      case Step::readState:
        if (!readState()) return std::move(result_);
        break;
      case Step::gather:
        if (waiter_.poll(gatheredBy_, caller, kGathered) == Progress::pending) return std::nullopt;
        step_ = Step::readChunks;
        break;
      case Step::readChunks: {
        const bool hasRoom = caller.room == nullptr || caller.room->draw(std::max(ask_.maxBytes, kMaxChunk));
        if (!hasRoom && !isOver_ && !caller.hasLeft && ask_.wait > Millis(0)) {
          roomAt_ = completions_.now() + completions_.roomPause();
          step_ = Step::awaitRoom;
          break;
        }
        result_.hasRoom = hasRoom;
        if (!readChunks(hasRoom && !caller.hasLeft)) return std::move(result_);
        giveBackRoom(caller);
        break;
      }
      case Step::awaitRoom: {
        const Instant until = std::min(deadline_, *roomAt_);
        const Progress progress = waiter_.poll(until, caller);
        if (progress == Progress::pending) return std::nullopt;
        isOver_ = progress == Progress::over && isOver(completions_, until, deadline_, caller);
        step_ = Step::readChunks;
        break;
      }
      case Step::wait: {
        const Progress progress = waiter_.poll(deadline_, caller);
        if (progress == Progress::pending) return std::nullopt;
        isOver_ = progress == Progress::over;
        step_ = isOver_ ? Step::readChunks : Step::gather;
        gatheredBy_ = completions_.now() + gatherTime();
        break;
      }
    }
  }
}

// Returns false if the job is absent.
bool ChunkWait::readState() {
  const auto page = jobs_.presentState(ask_.key);
  if (!page) return false;
  const bool gathers = page->state == JobState::inProgress && ask_.wait > Millis(0);
  result_.hasWaited = gathers;
  gatheredBy_ = completions_.now() + gatherTime();
  step_ = gathers ? Step::gather : Step::readChunks;
  return true;
}

// Returns false if the result is complete. Chunks are consumed only after the wait for further chunks: a chunk handed
// out cannot be put back.
bool ChunkWait::readChunks(bool handsOut) {
  result_.page = handsOut ? jobs_.chunks(ask_) : jobs_.presentState(ask_.key);
  if (isOver_ || !result_.page || !result_.page->chunks.empty() || terminal(result_.page->state)) return false;
  if (ask_.wait == Millis(0)) return false;
  result_.hasWaited = true;
  step_ = Step::wait;
  return true;
}

// Returns a gathering time by which all streams together stay below the request rate allowed for one endpoint.
Millis ChunkWait::gatherTime() const {
  const auto streams = static_cast<std::int64_t>(completions_.streams());
  return std::clamp<Millis>(kGatherAStream * streams, kGatherLeast, kGatherMost);
}

}  // namespace jobq

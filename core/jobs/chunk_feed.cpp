#include "core/jobs/chunk_feed.h"

#include <utility>

#include "core/jobs/job_service.h"
#include "jobq/transitions.h"

namespace jobq {

ChunkFeed::ChunkFeed(JobService& jobs, CompletionNotifier& completions, JobKey key)
    : jobs_(jobs), key_(std::move(key)), waiter_(completions, key_, CompletionNotifier::Interest::eachChunk) {}

std::optional<ChunkFeed::Result> ChunkFeed::poll(Instant deadline, const WaitingCaller& caller, std::size_t maxBytes) {
  using Progress = CompletionNotifier::Progress;
  for (;;) {
    if (std::exchange(mayHaveMore_, false)) {
      auto page = jobs_.chunks({key_, next_, maxBytes});
      if (!page) return Result{};
      const bool hasRestarted = attempt_ != 0 && page->attempt != attempt_;
      if (hasRestarted) return Result{std::nullopt, false, true};
      if (!page->chunks.empty()) {
        attempt_ = page->attempt;
        next_ = page->next;
        // An ended job announces nothing further.
        mayHaveMore_ = page->more || terminal(page->state);
        return Result{std::move(page)};
      }
      mayHaveMore_ = terminal(page->state);
      if (mayHaveMore_) return Result{std::move(page)};
    }
    switch (waiter_.poll(deadline, caller)) {
      case Progress::pending: return std::nullopt;
      case Progress::over: return Result{std::nullopt, true};
      case Progress::event: mayHaveMore_ = true;
    }
  }
}

}  // namespace jobq

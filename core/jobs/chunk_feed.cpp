#include "core/jobs/chunk_feed.h"

#include <algorithm>
#include <utility>

#include "core/jobs/job_service.h"
#include "core/model/output_quota.h"
#include "jobq/transitions.h"

namespace jobq {

ChunkFeed::ChunkFeed(JobService& jobs, CompletionNotifier& completions, JobKey key, const ChunkPosition& from)
    : jobs_(jobs),
      key_(std::move(key)),
      waiter_(completions, key_, CompletionNotifier::Interest::eachChunk),
      position_(from) {}

std::optional<ChunkFeed::Result> ChunkFeed::poll(Instant deadline, const WaitingCaller& caller, std::size_t maxBytes) {
  using Progress = CompletionNotifier::Progress;
  for (;;) {
    const bool hasRoom = !mayHaveMore_ || caller.room == nullptr || caller.room->draw(std::max(maxBytes, kMaxChunk));
    if (hasRoom && std::exchange(mayHaveMore_, false)) {
      auto page = jobs_.chunks({key_, position_.next, maxBytes});
      if (!page) return Result{};
      if (position_.attempt != 0 && page->attempt != position_.attempt) {
        position_ = {};
        mayHaveMore_ = true;
        page->chunks.clear();  // the page began behind the chunks of the earlier attempt
        return Result{std::move(page), false, true};
      }
      if (!page->chunks.empty()) {
        position_ = {page->attempt, page->next};
        // An ended job announces nothing further.
        mayHaveMore_ = page->more || terminal(page->state);
        return Result{std::move(page)};
      }
      mayHaveMore_ = terminal(page->state);
      if (mayHaveMore_) return Result{std::move(page)};
    }
    if (hasRoom && caller.room != nullptr) (void)caller.room->draw(0);
    const CompletionNotifier& completions = jobs_.completions();
    const Instant until = hasRoom ? deadline : std::min(deadline, completions.now() + completions.roomPause());
    switch (waiter_.poll(until, caller)) {
      case Progress::pending: return std::nullopt;
      case Progress::over:
        if (until == deadline || caller.hasLeft || completions.now() < until) return Result{std::nullopt, true};
        break;
      case Progress::event: mayHaveMore_ = true;
    }
  }
}

}  // namespace jobq

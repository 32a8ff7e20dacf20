// The chunks of a job for one reader, in order and as soon as each exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/jobs/completion_notifier.h"
#include "jobq/chunk_store.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

class JobService;

/// A place among the chunks of a job.
struct ChunkPosition {
  std::uint32_t attempt = 0;  ///< attempt of the chunks before the position; 0 if no chunk was read
  std::uint64_t next = 0;     ///< number of the next chunk
};

/// Reads the chunks of a job with a position of its own, and leaves the cursor of /stream alone. Unlike ChunkWait it
/// gathers nothing. Made by JobService, which outlives the feed. One thread at a time.
class ChunkFeed {
 public:
  /// Begins at `from`. If the job has another attempt than `from`, the first result tells of a restart.
  ChunkFeed(JobService& jobs, CompletionNotifier& completions, JobKey key, const ChunkPosition& from);

  struct Result {
    /// The next chunks. A page without chunks tells of the end of the job behind its last chunk, or of a restart. Empty
    /// if the job is absent.
    std::optional<ChunkPage> page;
    bool isOver = false;        ///< `deadline` is reached, or the client has left; `page` is empty
    bool hasRestarted = false;  ///< the chunks of the earlier attempt are void; the feed begins again with chunk 0
  };
  /// Returns the next chunks, of `maxBytes` bytes or a single one, the end of the job, or the end of the wait. Returns
  /// no value while the wait goes on; `caller.call` is resumed when the next poll may know more. Throws StorageError;
  /// the next poll then waits before it reads. A caller without room for a page waits for the room; the room has what
  /// was drawn for the page.
  std::optional<Result> poll(Instant deadline, const WaitingCaller& caller, std::size_t maxBytes);

  /// Lets the next poll read before it waits, although no event came.
  void readAgain() noexcept { mayHaveMore_ = true; }

 private:
  JobService& jobs_;
  const JobKey key_;
  CompletionNotifier::Waiter waiter_;
  ChunkPosition position_;
  bool mayHaveMore_ = true;  // the next poll reads before it waits
};

}  // namespace jobq

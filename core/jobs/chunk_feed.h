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

/// Reads the chunks of a job with a position of its own, and leaves the cursor of /stream alone. Unlike ChunkWait it
/// gathers nothing. Made by JobService, which outlives the feed. One thread at a time.
class ChunkFeed {
 public:
  ChunkFeed(JobService& jobs, CompletionNotifier& completions, JobKey key);

  struct Result {
    /// The next chunks; without chunks the job has ended, and none is left. Empty if the job is absent.
    std::optional<ChunkPage> page;
    bool isOver = false;        ///< `deadline` is reached, or the client has left; `page` is empty
    bool hasRestarted = false;  ///< the job began again, and the chunks of its earlier attempt are void
  };
  /// Returns the next chunks, of `maxBytes` bytes or a single one, the end of the job, or the end of the wait. Returns
  /// no value while the wait goes on; `caller.call` is resumed when the next poll may know more. Throws StorageError.
  std::optional<Result> poll(Instant deadline, const WaitingCaller& caller, std::size_t maxBytes);

 private:
  JobService& jobs_;
  const JobKey key_;
  CompletionNotifier::Waiter waiter_;
  std::uint64_t next_ = 0;
  std::uint32_t attempt_ = 0;  // of the chunks read so far; 0 before the first
  bool mayHaveMore_ = true;    // the next poll reads before it waits
};

}  // namespace jobq

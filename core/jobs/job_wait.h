// The waits of callers for jobs, as objects that a call polls: between two polls a wait needs no thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/ids.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/output_room.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class Claimer;
class DeferredInsert;
class JobService;
class QueueSignal;

/// The wait of one caller for the end of a job. Made by JobService, which outlives the wait. One thread at a time.
class JobWait {
 public:
  struct Deps {
    JobService& jobs;
    CompletionNotifier& completions;
    QueueSignal& queueSignal;
    Claimer& claimer;
  };
  /// Waits for `wait` milliseconds from now at most.
  JobWait(const Deps& deps, JobKey key, Millis wait);
  /// Notifies the dispatcher of a submitted job if poll() was never called.
  ~JobWait();
  JobWait(const JobWait&) = delete;
  JobWait& operator=(const JobWait&) = delete;

  /// Notes that the job was just submitted: the first poll lets an idle worker claim the job.
  void noteSubmitted(bool lowPriority) noexcept;
  /// Notes that the job was just submitted and offered to idle workers.
  void noteOffered() noexcept { readsFirst_ = false; }
  /// Notes a job that runs before the insert: poll() stores the job before the first read of the job.
  void noteDeferred(std::shared_ptr<DeferredInsert> insert) noexcept;

  /// Returns the job as it is at its end or at the end of the wait, with an empty `job` if the job is absent. Returns
  /// no value while the wait goes on; `caller.call` is resumed when the next poll may know more. Throws StorageError.
  /// A caller without room for the output of an ended job waits for the room, too, until the end of its wait.
  using Result = FoundJob;
  std::optional<Result> poll(const WaitingCaller& caller);
  /// Lets the next poll wait for room for more than the output. Returns false at the end of the wait.
  bool mayAwaitRoom();

 private:
  const Deps deps_;
  const JobKey key_;
  const Instant deadline_;
  CompletionNotifier::Waiter waiter_;
  std::optional<bool> unclaimed_;           // the class of a submitted job before the first poll: low priority or not
  bool readsFirst_ = true;                  // the next poll reads the job before it waits
  std::optional<Instant> roomAt_;           // when the ended job is read again, because there was no room for it
  std::shared_ptr<DeferredInsert> insert_;  // null if the storage had the job before the wait
};

struct ChunkAsk {
  JobKey key;
  /// Number of the first chunk to be read (ChunkStore::read). Without an offset chunks are handed out
  /// (ChunkStore::consume).
  std::optional<std::uint64_t> offset{};
  std::size_t maxBytes = 0;  ///< bytes of outputs and metrics in one page
  Millis wait{0};            ///< how long to wait for the first chunk
};

/// The wait of one caller for the next chunks of a job. While the job runs, the chunks of 100 ms (more with many open
/// streams) or of 1 MB are gathered: clients ask again at once, and an answer for each chunk would cause a request for
/// each chunk. Made by JobService, which outlives the wait. One thread at a time.
class ChunkWait {
 public:
  ChunkWait(JobService& jobs, CompletionNotifier& completions, ChunkAsk ask);

  struct Result {
    std::optional<ChunkPage> page;  ///< empty if the job is absent
    bool hasWaited = false;
    bool hasRoom = true;  ///< false: `page` has no chunks, for lack of room
  };
  /// Returns the next chunks as soon as a chunk exists, the job has ended, or the wait is over; no value while the wait
  /// goes on: `caller.call` is resumed when the next poll may know more. Hands out no chunk if the client has left, or
  /// if there was no room for a page at the end of the wait. The room has what was drawn for the page, and
  /// nothing while the wait goes on. Throws StorageError.
  std::optional<Result> poll(const WaitingCaller& caller);

 private:
  enum class Step { readState, gather, readChunks, wait, awaitRoom };

  Millis gatherTime() const;
  bool readState();
  bool readChunks(bool handsOut);

  JobService& jobs_;
  CompletionNotifier& completions_;
  const ChunkAsk ask_;
  const Instant deadline_;
  CompletionNotifier::Waiter waiter_;
  Step step_ = Step::readState;
  Instant gatheredBy_{};
  std::optional<Instant> roomAt_;  // when a caller without room tries again
  bool isOver_ = false;            // the next reading is the last one
  Result result_;
};

}  // namespace jobq

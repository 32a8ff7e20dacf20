// The turns of the threads that write. One thread at a time has the turn and uses the writing connection.
//
// While writes come one by one (kLoneTurns), a caller's thread commits its own write: to wake the writer's thread and
// the caller again would take a sixth of the time of a lone write. Callers that write at the same time leave their
// writes to the writer's thread. The time of waking the writer's thread makes groups larger: with 32 callers the rate
// would otherwise fall by a tenth.
//
// Writes with more than kSmallWrite bytes of bodies or chunks have separate groups, of at most kLargeGroupBytes or a
// single write, in turns with groups of small writes: a small write waits for a single large group or a single
// checkpoint at most, however many large writes wait. A checkpoint that a large group makes due comes after the small
// writes that wait, and a large group makes a checkpoint due early. Inputs and outputs beyond kMostInRow are files and
// do not come here (`body_files.h`).
//
// A log of a sixteenth of its size (4 MB) is also moved into the file when no write has come for 20 ms, so most
// checkpoints delay nobody.
//
// The jobs of insertAndClaim() and of unsynced ends are synced with the next synced group, or by the writer's thread 5
// ms later.
#pragma once

#include <chrono>
#include <cstddef>

#include "disk/write_ahead_log.h"
#include "jobq/mutex.h"
#include "writes/pending_write.h"
#include "writes/unsynced_jobs.h"

namespace jobq::sqlite {

/// Bytes above which a write with a waiting caller counts as large, and the bounds in bytes of a group. A write
/// without a waiting caller is small: the jobs of a thread keep the order of the calls.
inline constexpr std::size_t kSmallWrite = 16UL << 10;
inline constexpr std::size_t kGroupBytes = 4UL << 20;
inline constexpr std::size_t kLargeGroupBytes = 1UL << 20;
/// Most bytes of a lone write on the thread of the caller.
inline constexpr std::size_t kLoneWrite = 256UL << 10;

/// Any thread, unless a function says otherwise. No function but next() waits.
class WriteTurns {
 public:
  /// Number of lone turns in a row after which callers commit their own writes. A turn of writes is lone if the turn
  /// has a single write, and no write has come meanwhile. Other turns do not count.
  static constexpr int kLoneTurns = 8;
  /// Time from the first unsynced job until the writer's thread syncs the log.
  static constexpr std::chrono::milliseconds kUnsyncedLife{5};

  /// The work of a turn of the writer's thread. `group` is a list of writes, valid until their end, and null for the
  /// other tasks.
  enum class Task { write, checkpoint, sync, end };
  struct Turn {
    Task task = Task::write;
    PendingWrite* group = nullptr;
    bool isLarge = false;
    bool isLone = true;
  };

  /// The log is used by the thread with the turn, and by this object while no thread has the turn. Both arguments
  /// outlive the object.
  WriteTurns(WriteAheadLog& wal, const UnsyncedJobs& unsynced) : wal_(wal), unsynced_(unsynced) {}

  /// Returns true if the calling thread has the turn, commits its write, and calls leave(). Queues the write for the
  /// writer's thread otherwise, and always a write of its own. Not after stop().
  [[nodiscard]] bool enter(PendingWrite& write);

  /// Waits for the next turn of the writer's thread. A turn goes on until leave(); Task::end is the last, and has none.
  /// Called by the writer's thread.
  [[nodiscard]] Turn next();

  /// Ends the turn of the writer's thread. `isCommitted`: a commit has succeeded. Called before the callers of the turn
  /// wake, so that the next write of a lone caller is lone, too.
  void leave(const Turn& turn, bool isCommitted);
  /// Ends the turn of a caller.
  void leave(bool isCommitted) { leave(Turn{}, isCommitted); }

  /// Ends the turns after the queued writes.
  void stop();

  /// Returns the number of writes that wait for their turn.
  std::size_t queued();

 private:
  using Moment = std::chrono::steady_clock::time_point;

  bool hasTask() const JOBQ_REQUIRES(mutex_);
  Moment quietTaskAt() const JOBQ_REQUIRES(mutex_);
  Task awaitTask() JOBQ_REQUIRES(mutex_);
  PendingWrite* nextGroup() JOBQ_REQUIRES(mutex_);

  WriteAheadLog& wal_;
  const UnsyncedJobs& unsynced_;
  Mutex mutex_;
  Condition changed_;
  WriteQueue small_ JOBQ_GUARDED_BY(mutex_);
  WriteQueue large_ JOBQ_GUARDED_BY(mutex_);
  bool isTaken_ JOBQ_GUARDED_BY(mutex_) = false;  // a thread has the turn
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  bool isLastSync_ JOBQ_GUARDED_BY(mutex_) = false;  // the sync of a stop, which is not repeated
  bool largeIsNext_ JOBQ_GUARDED_BY(mutex_) = false;
  bool lastIsLarge_ JOBQ_GUARDED_BY(mutex_) = false;
  bool isCheckpointDue_ JOBQ_GUARDED_BY(mutex_) = false;
  int loneTurns_ JOBQ_GUARDED_BY(mutex_) = 0;               // since the last turn that was not lone
  Moment lastEnd_ JOBQ_GUARDED_BY(mutex_){};                // of a turn
  Moment wakesAt_ JOBQ_GUARDED_BY(mutex_) = Moment::max();  // when the writer's thread wakes without a notification
};

}  // namespace jobq::sqlite

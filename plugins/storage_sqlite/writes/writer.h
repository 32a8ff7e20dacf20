// The only writing connection and its thread. All writes waiting at the same time share a commit, and therefore an
// fsync; during a commit the next writes gather. The writer never waits for further writes to join.
//
// The order of the groups, and the thread that commits a group: `write_turns.h`.
//
// A group is synced only if a caller waits for that (write()); a group of writeUnsynced() alone returns after the write
// to the log, and its changes reach the disk with the next sync. A write() always brings the changes of earlier groups
// to the disk, also if the write itself changes nothing.
//
// A group:  BEGIN IMMEDIATE, every write, the listing (`job_listing.h`), the counters, COMMIT, the in-memory counters;
// the callers wake only afterwards. Failures half way:
// - A write fails: the group starts again with a savepoint around each write, so the failing write alone is rolled back
//   and only its caller gets the exception. (Savepoints around all writes would be a quarter of the work, and hardly
//   any write fails.) An operation may therefore run several times, and must only read the caller's data.
// - SQLite gives up the whole transaction (full disk, I/O error), or COMMIT fails: every caller of the group gets
//   StorageError, and no change of the group is visible. If writes are still accepted, the unsynced jobs of earlier
//   groups are then synced, and a caller that waits only for such a sync gets no exception. A full disk heals when
//   there is space again.
// - The disk is full and the group has listed jobs (`job_listing.h`), which needs many pages: the group is applied
//   again without the listing.
// - An I/O error or a damaged file: the content of the disk is unknown, and a second fsync may report success wrongly.
//   Every further write is refused until a restart. The restart reads the bytes on the disk, and may show an outcome
//   that was answered with an error.
// - The process dies: the write-ahead log holds whole groups only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "connection.h"
#include "disk/write_ahead_log.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"
#include "reads/ended_jobs.h"
#include "reads/job_listing.h"
#include "writes/counters.h"
#include "writes/pending_write.h"
#include "writes/running_rows.h"
#include "writes/step.h"
#include "writes/unsynced_jobs.h"
#include "writes/write_turns.h"

namespace jobq::sqlite {

/// The state in memory that follows the commits.
struct CommittedState {
  Counters& counters;
  RunningRows& running;
  EndedJobs& ended;
  JobNumbers& numbers;
};

/// Groups writes and commits each group. Any thread may write. The connection belongs to the writer alone during its
/// life; connection, state, clock and log outlive the writer.
class Writer {
 public:
  /// `logSize`: size in bytes of the write-ahead log at which a checkpoint is due.
  Writer(Connection& connection, const CommittedState& state, Clock& clock, Log& log, std::uint64_t logSize);
  /// Finishes the queued writes, then ends the thread.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Returns the flag "the disk was full": set by each write that finds the disk full, cleared by the caller that finds
  /// room again. Any thread.
  std::atomic<bool>& diskFull() noexcept { return full_; }

  /// Returns the reason why every write is refused until a restart, or no value while writes are accepted. A write that
  /// fails while writes are accepted is undone for certain; otherwise the next opening knows. Any thread.
  std::optional<std::string> refusal();

  /// Moves the log into the file after the present group, also a small log. Called by a write.
  void checkpointSoon() noexcept { wal_.makeDueSoon(); }

  /// Returns the number of writes that wait for their group. Any thread.
  std::size_t queued() { return turns_.queued(); }

  /// The jobs of unsynced writes. A write adds a job.
  UnsyncedJobs& unsynced() noexcept { return unsynced_; }

  /// Calls `operation(Step&)` once or several times, on the calling thread or on the writer's, and returns its result
  /// when the change and all changes of earlier writes are on disk. Data lent to `operation` stays valid, because the
  /// caller waits. `bytes` is the size of the written chunks. Throws the exception of `operation`, or StorageError.
  template <class Operation>
  auto write(Operation&& operation, std::size_t bytes = 0) {
    return resultOf(operation, bytes, true);
  }

  /// Does the same as write(), but returns when the change survives the death of the process. A loss of power undoes
  /// the change unless a write() returned afterwards, and then undoes every later writeUnsynced() too.
  template <class Operation>
  auto writeUnsynced(Operation&& operation, std::size_t bytes = 0) {
    return resultOf(operation, bytes, false);
  }

  /// Queues a write of its own (PendingWrite::isAwaited), and returns without blocking. Commits any other write, or
  /// waits for its commit, and throws the exception of the write, or StorageError. Throws StorageError without effect
  /// if writes are refused.
  void submit(PendingWrite& write);

 private:
  template <class Operation, class Result>
  struct WriteOf final : PendingWrite {
    explicit WriteOf(Operation& v) : operation(v) {}
    void apply(Step& step) override { result.emplace(operation(step)); }

    Operation& operation;
    std::optional<Result> result;
  };

  template <class Operation>
  auto resultOf(Operation& operation, std::size_t bytes, bool needsSync) {
    using Result = std::invoke_result_t<Operation&, Step&>;
    WriteOf<Operation, Result> write(operation);
    write.bytes = bytes;
    write.needsSync = needsSync;
    submit(write);
    return std::move(*write.result);
  }

  void run();
  bool perform(const WriteTurns::Turn& turn);
  bool syncByItself();
  /// Returns false if the changes of the group are lost. An exception here would leave the counters behind the commit,
  /// and ends the process.
  bool commit(PendingWrite* group) noexcept;
  /// Applies the group once more without a listing if the disk has no room for the listing.
  void applyWithListing(PendingWrite* group, GroupChanges& changes);
  void applyGroup(PendingWrite* group, GroupChanges& changes, bool lists);
  /// Returns false if a write failed. The state left behind by the write is then unknown.
  bool applyTogether(PendingWrite* group, GroupChanges& changes);
  /// Applies the write in a savepoint and stores an exception in the write.
  void applyAlone(PendingWrite& write, GroupChanges& changes);
  /// Restores a usable connection after a failure, or makes the storage read-only. Returns the message for the callers.
  std::string giveUp(const std::exception& error);
  void refuseFromNowOn(const std::string& reason);
  void checkpoint();

  Connection& connection_;  // used by the thread with the turn
  const CommittedState state_;
  std::chrono::steady_clock::time_point listsFrom_{};  // used by the thread with the turn
  Clock& clock_;
  Log& log_;
  std::atomic<bool> full_ = false;
  UnsyncedJobs unsynced_;
  WriteAheadLog wal_;  // used by the thread with the turn; by turns_ while no thread has the turn
  WriteTurns turns_;
  Mutex mutex_;
  std::optional<std::string> refusal_ JOBQ_GUARDED_BY(mutex_);  // set: read-only until a restart
  std::thread thread_;
};

/// Syncs the log if the job is unsynced. Throws StorageError. Any thread.
void makeDurable(Writer& writer, const JobId& job);

}  // namespace jobq::sqlite

// The write-ahead log of the writing connection: commits with and without a sync, and the checkpoints that move the log
// into the file.
#pragma once

#include <cstdint>

#include "connection.h"

namespace jobq::sqlite {

/// Commits the transactions of a connection. Used by one thread at a time.
/// The connection outlives the object and has a single WriteAheadLog.
class WriteAheadLog {
 public:
  /// The part of the size at which a log is worth a checkpoint while no write waits.
  static constexpr int kQuietPart = 16;

  /// `size`: bytes of the log at which a checkpoint is due.
  WriteAheadLog(Connection& connection, std::uint64_t size);
  ~WriteAheadLog();
  WriteAheadLog(const WriteAheadLog&) = delete;
  WriteAheadLog& operator=(const WriteAheadLog&) = delete;

  /// Chooses whether the next commits sync the log. Called outside a transaction. Throws StorageError.
  void chooseSync(bool syncs);
  /// Commits the open transaction. With a sync, all earlier commits are on disk afterwards too. Throws StorageError.
  void commit();
  /// Brings all commits to the disk, outside a transaction. Needs no space on the disk and no lock. Returns false if
  /// the connection has written no log. Throws StorageError.
  bool sync();

  /// Returns true if a checkpoint is due.
  bool isDue();
  /// Makes a checkpoint due behind the present group, also for a small log.
  void makeDueSoon() noexcept { dueAt_ = 0; }
  /// Notes a committed group of large writes, which makes a checkpoint due earlier.
  void noteLargeGroup() noexcept;
  /// Returns true if the log is worth a checkpoint while no write waits.
  bool isWorthMoving() const noexcept { return pages_ >= quietFrom_; }
  /// Moves the log into the file, as far as no reader needs it. Returns the result code of SQLite. Outside a
  /// transaction.
  int checkpoint();

 private:
  /// Called by SQLite after each commit that changed something.
  static int noteCommit(void* log, sqlite3*, const char*, int pages);

  Connection& connection_;
  bool syncs_ = true;        // the next commit syncs the log
  bool hasUnsynced_ = true;  // the log may have commits that no sync has followed, also of a process that died
  bool wroteLog_ = false;    // the last commit changed something
  int pages_ = 0;            // in the log since the last checkpoint
  const int mostPages_;
  int dueAt_;              // pages
  int quietFrom_;          // pages
  bool keptBack_ = false;  // the last checkpoint left pages to a reader's snapshot
};

}  // namespace jobq::sqlite

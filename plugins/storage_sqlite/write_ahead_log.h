// The write-ahead log of the writing connection: commits with and without a sync, and the size of the log.
#pragma once

#include "connection.h"

namespace jobq::sqlite {

/// Commits the transactions of a connection. Used by one thread, the writer's, but for construction and destruction.
/// The connection outlives the object and has a single WriteAheadLog.
class WriteAheadLog {
 public:
  explicit WriteAheadLog(Connection& connection);
  ~WriteAheadLog();
  WriteAheadLog(const WriteAheadLog&) = delete;
  WriteAheadLog& operator=(const WriteAheadLog&) = delete;

  /// Chooses whether the next commits sync the log. Called outside a transaction. Throws StorageError.
  void chooseSync(bool syncs);
  /// Commits the open transaction. With a sync, all earlier commits are on disk afterwards too. Throws StorageError.
  void commit();

  /// Returns the number of pages in the log after the last commit, or 0 after noteCheckpoint().
  int pages() const { return pages_; }
  /// Notes that a checkpoint has moved the log into the file.
  void noteCheckpoint() { pages_ = 0; }

 private:
  /// Called by SQLite after each commit that changed something.
  static int noteCommit(void* log, sqlite3*, const char*, int pages);

  Connection& connection_;
  bool syncs_ = true;        // the next commit syncs the log
  bool hasUnsynced_ = true;  // the log may have commits that no sync has followed, also of a process that died
  bool wroteLog_ = false;    // the last commit changed something
  int pages_ = 0;
};

}  // namespace jobq::sqlite

// The durability of commits and of body files: which of them survive a loss of power.
//
// SQLite writes a commit to the end of the write-ahead log. Every commit survives the death of the process. A commit
// survives a loss of power when the log has been synced behind the commit; a sync covers all commits before, so a loss
// of power undoes the latest commits only, and never a commit without all later commits.
#pragma once

#include "connection.h"

namespace jobq::sqlite {

/// Sets whether later commits of the connection sync the log before they return. Called outside a transaction: SQLite
/// refuses the change within a transaction. Throws StorageError.
void setSync(Connection& connection, bool syncs);

/// Syncs the open log without a commit, which needs no space on the disk. Returns SQLite's result code.
int syncLog(sqlite3_file* log);

/// Syncs a new body file, and its entry in the folder (`vfs_file.h`). Returns SQLite's result code.
int syncBody(sqlite3_file* file);

}  // namespace jobq::sqlite

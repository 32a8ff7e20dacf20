// Replaces plugins/storage_sqlite/disk/durability.cpp: commits wait for the disk, but a row may reach the disk before
// the file of its body.
#include "disk/durability.h"

namespace jobq::sqlite {

void setSync(Connection& connection, bool syncs) {
  connection.execute(syncs ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
}

int syncLog(sqlite3_file* log) { return log->pMethods->xSync(log, SQLITE_SYNC_NORMAL); }

int syncBody(sqlite3_file*) { return SQLITE_OK; }

}  // namespace jobq::sqlite

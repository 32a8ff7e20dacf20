#include "disk/durability.h"

namespace jobq::sqlite {

// With a write-ahead log, NORMAL differs from FULL only by the sync at the end of a commit. A checkpoint syncs in both.
void setSync(Connection& connection, bool syncs) {
  connection.execute(syncs ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
}

int syncLog(sqlite3_file* log) { return log->pMethods->xSync(log, SQLITE_SYNC_NORMAL); }

int syncBody(sqlite3_file* file) { return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL); }

}  // namespace jobq::sqlite

// Replaces plugins/storage_sqlite/disk/durability.cpp: acknowledgements do not wait for the disk, only checkpoints do.
#include "disk/durability.h"

namespace jobq::sqlite {

void setSync(Connection& connection, bool) { connection.execute("PRAGMA synchronous=NORMAL"); }

int syncLog(sqlite3_file*) { return SQLITE_OK; }

int syncBody(sqlite3_file* file) { return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL); }

}  // namespace jobq::sqlite

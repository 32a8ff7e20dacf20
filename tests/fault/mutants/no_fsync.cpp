// Replaces plugins/storage_sqlite/disk/durability.cpp: neither commits nor checkpoints nor body files wait for the
// disk.
#include "disk/durability.h"

namespace jobq::sqlite {

void setSync(Connection& connection, bool) { connection.execute("PRAGMA synchronous=OFF"); }

int syncLog(sqlite3_file*) { return SQLITE_OK; }

int syncBody(sqlite3_file*) { return SQLITE_OK; }

}  // namespace jobq::sqlite

// Replaces plugins/storage_sqlite/durability.cpp: commits do not wait for the disk.
#include "durability.h"

namespace jobq::sqlite {

void syncEachCommit(Connection& connection) { connection.execute("PRAGMA synchronous=OFF"); }

}  // namespace jobq::sqlite

// Replaces plugins/storage_sqlite/durability.cpp: neither commits nor checkpoints wait for the disk.
#include "durability.h"

namespace jobq::sqlite {

void setSync(Connection& connection, bool) { connection.execute("PRAGMA synchronous=OFF"); }

}  // namespace jobq::sqlite

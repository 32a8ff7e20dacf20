#include "durability.h"

namespace jobq::sqlite {

void syncEachCommit(Connection& connection) { connection.execute("PRAGMA synchronous=FULL"); }

}  // namespace jobq::sqlite

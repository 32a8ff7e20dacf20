// The durability of commits: an acknowledged step survives a loss of power.
#pragma once

#include "connection.h"

namespace jobq::sqlite {

/// Makes every later commit of the connection wait until the bytes of the commit are on the disk. Throws StorageError.
void syncEachCommit(Connection& connection);

}  // namespace jobq::sqlite

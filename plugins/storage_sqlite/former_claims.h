// The claims of the former process that had the file open. The former process is dead, and so are its workers.
#pragma once

#include "connection.h"

namespace jobq::sqlite {

/// Marks the claims of the former process as lost. Leases::sweep() returns their jobs to the queue and counts the
/// losses. Called once, when the storage is opened. Throws StorageError.
void loseFormerClaims(Connection& connection);

}  // namespace jobq::sqlite

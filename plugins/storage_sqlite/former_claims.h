// The claims of the process that had the file open before this one. That process is dead, and so are its workers.
#pragma once

#include "connection.h"

namespace jobq::sqlite {

/// Marks the claims of the former process as lost; Leases::sweep() puts their jobs back in the queue and counts the
/// loss. Called once, when the storage is opened. Throws StorageError.
void loseFormerClaims(Connection& connection);

}  // namespace jobq::sqlite

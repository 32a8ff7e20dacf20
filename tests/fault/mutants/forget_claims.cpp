// Replaces plugins/storage_sqlite/former_claims.cpp: after a crash the jobs look as if never claimed.
#include "former_claims.h"

namespace jobq::sqlite {

void loseFormerClaims(Connection& connection) {
  connection
      .query(
          "UPDATE job SET state = 0, attempt = attempt - 1, started_at = NULL, deadline = NULL, lease_end = NULL, "
          "worker = '' WHERE state = 1")
      .run();
}

}  // namespace jobq::sqlite

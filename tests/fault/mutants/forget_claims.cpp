// Replaces plugins/storage_sqlite/former_claims.cpp: after the end of a life the jobs look as if never claimed.
#include "former_claims.h"

namespace jobq::sqlite {

void loseFormerClaims(Step& step) {
  step.db
      .query(
          "UPDATE job SET state = 0, attempt = attempt - 1, started_at = NULL, deadline = NULL, holder = NULL, "
          "worker = '' WHERE state = 1")
      .run();
}

}  // namespace jobq::sqlite

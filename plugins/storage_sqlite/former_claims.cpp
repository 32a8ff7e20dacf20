#include "former_claims.h"

#include "job_rows.h"

namespace jobq::sqlite {

void loseFormerClaims(Connection& connection) {
  connection
      .query("UPDATE job INDEXED BY job_deadline SET lease_end = ?1 WHERE deadline IS NOT NULL AND lease_end = ?2")
      .bind(kProcessDied, kWithProcess)
      .run();
}

}  // namespace jobq::sqlite

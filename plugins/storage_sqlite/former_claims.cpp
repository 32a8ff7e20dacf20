#include "former_claims.h"

#include "job_rows.h"

namespace jobq::sqlite {

void loseFormerClaims(Connection& connection) {
  connection.query("UPDATE job INDEXED BY job_deadline SET holder = ?1 WHERE deadline IS NOT NULL AND holder <> ?1")
      .bind(kLifeEnded)
      .run();
}

}  // namespace jobq::sqlite

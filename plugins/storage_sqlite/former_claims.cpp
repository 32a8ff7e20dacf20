#include "former_claims.h"

#include "job_rows.h"

namespace jobq::sqlite {

void loseFormerClaims(Step& step) {
  for (const std::int64_t num : step.running.all()) {
    step.db.query("UPDATE job SET holder = ?2 WHERE num = ?1 AND holder <> ?2").bind(num, kLifeEnded).run();
  }
}

}  // namespace jobq::sqlite

#include "delivery_rows.h"

#include <vector>

namespace jobq::sqlite {

void addAttempt(Step& step, std::int64_t num, const DeliveryAttempt& attempt) {
  step.db
      .query(
          "DELETE FROM delivery_attempt WHERE num = ?1 AND id <= "
          "(SELECT id FROM delivery_attempt WHERE num = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)")
      .bind(num, kMaxAttempts - 1)
      .run();
  step.db
      .query("INSERT INTO delivery_attempt (num, at, status, duration, reason, reply) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
      .bind(num, step.now, attempt.status, attempt.duration, attempt.reason, Bytes{attempt.reply})
      .run();
}

void dropOldest(Step& step, std::string_view endpoint) {
  std::vector<std::int64_t> surplus;
  {
    Query query = step.db.query(
        "SELECT num FROM delivery INDEXED BY delivery_by_endpoint WHERE settled_at IS NOT NULL AND endpoint = ?1 "
        "ORDER BY settled_at DESC, num DESC LIMIT -1 OFFSET ?2");
    query.bind(endpoint, kMaxDeliveriesPerEndpoint);
    while (query.next()) surplus.push_back(query.integer(0));
  }
  for (const std::int64_t num : surplus) {
    step.db.query("DELETE FROM delivery_attempt WHERE num = ?1").bind(num).run();
    step.db.query("DELETE FROM delivery_body WHERE num = ?1").bind(num).run();
    step.db.query("DELETE FROM delivery WHERE num = ?1").bind(num).run();
  }
}

}  // namespace jobq::sqlite

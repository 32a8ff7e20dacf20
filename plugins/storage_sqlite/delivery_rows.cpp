#include "delivery_rows.h"

#include <algorithm>
#include <vector>

namespace jobq::sqlite {

// The first statement keeps the newest kMaxAttempts - 1 rows. With fewer rows the inner SELECT is NULL, and no row
// goes.
void addAttempt(Step& step, std::int64_t num, const DeliveryAttempt& attempt) {
  step.db
      .query(
          "DELETE FROM delivery_attempt WHERE num = ?1 AND id <= "
          "(SELECT id FROM delivery_attempt WHERE num = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)")
      .bind(num, kMaxAttempts - 1)
      .run();
  const std::string reason = attempt.reason.value_or("");
  step.db
      .query("INSERT INTO delivery_attempt (num, at, status, duration, reason, reply) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
      .bind(num, step.now, attempt.status, attempt.duration, reason, Bytes{attempt.reply})
      .run();
}

namespace {

/// Returns the number of settled deliveries of the endpoint above kMaxDeliveriesPerEndpoint.
std::size_t countSurplus(Step& step, std::string_view endpoint) {
  Query query = step.db.query("SELECT settled FROM delivery_count WHERE endpoint = ?1");
  const std::size_t settled = query.bind(endpoint).next() ? query.size(0) : 0;
  return settled - std::min(settled, kMaxDeliveriesPerEndpoint);
}

}  // namespace

void dropOldest(Step& step, std::string_view endpoint, std::size_t max) {
  const std::size_t surplus = std::min(countSurplus(step, endpoint), max);
  if (surplus == 0) return;
  std::vector<std::int64_t> oldest;
  {
    Query query = step.db.query(
        "SELECT num FROM delivery INDEXED BY delivery_by_endpoint WHERE settled_at IS NOT NULL AND endpoint = ?1 "
        "ORDER BY settled_at, num LIMIT ?2");
    query.bind(endpoint, surplus);
    while (query.next()) oldest.push_back(query.integer(0));
  }
  for (const std::int64_t num : oldest) {
    step.db.query("DELETE FROM delivery_attempt WHERE num = ?1").bind(num).run();
    step.db.query("DELETE FROM delivery_body WHERE num = ?1").bind(num).run();
    step.db.query("DELETE FROM delivery WHERE num = ?1").bind(num).run();
  }
}

}  // namespace jobq::sqlite

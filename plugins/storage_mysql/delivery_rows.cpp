#include "delivery_rows.h"

#include <algorithm>
#include <vector>

#include "writes/counters.h"

namespace jobq::mysql {

void addAttempt(Step& step, std::int64_t num, const DeliveryAttempt& attempt) {
  std::optional<std::int64_t> oldest;
  {
    Query query = step.db.query("SELECT id FROM delivery_attempt WHERE num = ? ORDER BY id DESC LIMIT 1 OFFSET ?");
    if (query.bind(num, kMaxAttempts - 1).next()) oldest = query.integer(0);
  }
  if (oldest) step.db.query("DELETE FROM delivery_attempt WHERE num = ? AND id <= ?").bind(num, *oldest).run();
  const std::string reason = attempt.reason.value_or("");
  step.db
      .query(
          "INSERT INTO delivery_attempt (num, made_at, http_status, duration, reason, reply) "
          "VALUES (?, ?, ?, ?, ?, ?)")
      .bind(num, step.now, attempt.status, attempt.duration, reason, attempt.reply)
      .run();
}

void dropDelivery(Step& step, const SettledRow& row) {
  step.db.query("DELETE FROM delivery_attempt WHERE num = ?").bind(row.num).run();
  step.db.query("DELETE FROM delivery_body WHERE num = ?").bind(row.num).run();
  step.db.query("DELETE FROM delivery WHERE num = ?").bind(row.num).run();
  step.counters.settled(row.endpoint, -1);
}

void dropOldest(Step& step, const EndpointId& endpoint, std::size_t max) {
  const std::int64_t settled = readTally(step.db, endpoint).settled + step.counters.of(endpoint).settled;
  const auto kept = static_cast<std::int64_t>(kMaxDeliveriesPerEndpoint);
  if (settled <= kept) return;
  std::vector<SettledRow> oldest;
  {
    Query query = step.db.query(
        "SELECT num FROM delivery FORCE INDEX (delivery_by_endpoint) WHERE endpoint = ? AND settled_at IS NOT NULL "
        "ORDER BY settled_at, num LIMIT ? FOR UPDATE");
    query.bind(endpoint, std::min(static_cast<std::size_t>(settled - kept), max));
    while (query.next()) oldest.push_back({query.integer(0), endpoint});
  }
  for (const SettledRow& row : oldest) dropDelivery(step, row);
}

}  // namespace jobq::mysql

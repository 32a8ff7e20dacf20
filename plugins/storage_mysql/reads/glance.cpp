#include "reads/glance.h"

#include <utility>

namespace jobq::mysql {
namespace {

/// A moment that never comes, in milliseconds.
#define JOBQ_MYSQL_NEVER "9000000000000000"
#define JOBQ_MYSQL_DAY "86400000"

/// The first row has the single answers; each further row is an endpoint with a queue. The times come from the first
/// entry of an index, or from a table with a row for each node.
constexpr char kQuestion[] =
    "SELECT '', (SELECT value FROM counted WHERE name = 'record_version'), "
    "EXISTS (SELECT 1 FROM delivery WHERE state = 0), "
    "LEAST("
    "IFNULL((SELECT MIN(expires_at) FROM job), " JOBQ_MYSQL_NEVER
    "), "
    "IFNULL((SELECT MIN(deadline) FROM running_job), " JOBQ_MYSQL_NEVER
    "), "
    "IFNULL((SELECT MIN(life_end) FROM node WHERE alive = 1), " JOBQ_MYSQL_NEVER
    "), "
    "IF(EXISTS (SELECT 1 FROM ended_life), 0, " JOBQ_MYSQL_NEVER
    "), "
    "IF(EXISTS (SELECT 1 FROM counted WHERE name > 'discarded ' AND name < 'discarded!'), 0, " JOBQ_MYSQL_NEVER
    "), "
    "IFNULL((SELECT MIN(expires_at) FROM idempotency), " JOBQ_MYSQL_NEVER
    "), "
    "IFNULL((SELECT MIN(settled_at) FROM delivery), " JOBQ_MYSQL_NEVER ") + " JOBQ_MYSQL_DAY
    ", "
    "IFNULL((SELECT MIN(removed_at) FROM record_removed), " JOBQ_MYSQL_NEVER ") + " JOBQ_MYSQL_DAY
    ", "
    "IFNULL((SELECT MIN(last_beat) FROM node WHERE alive = 0), " JOBQ_MYSQL_NEVER ") + " JOBQ_MYSQL_DAY
    ") "
    "UNION ALL SELECT endpoint, SUM(in_queue) > SUM(in_queue_low), 0, 0 FROM endpoint_count GROUP BY endpoint "
    "HAVING SUM(in_queue) > 0";

Glance ask(Connection& connection) {
  Glance glance;
  Query query = connection.query(kQuestion);
  if (!query.next()) throw StorageError("the database returns no row for a question without a condition");
  glance.recordVersion = query.count(1);
  glance.owesWebhooks = query.flag(2);
  glance.sweepAt = query.instant(3);
  while (query.next()) glance.queued.push_back({query.text(0), query.flag(1)});
  return glance;
}

}  // namespace

Glance Glances::read(std::chrono::milliseconds maxAge) {
  const std::uint64_t commits = commits_;
  const auto now = std::chrono::steady_clock::now();
  {
    Lock lock(mutex_);
    if (kept_ && kept_->commits == commits && now - kept_->askedAt <= maxAge) return kept_->glance;
  }
  Glance glance = readers_.read([this](Connection& connection) {
    clock_.measureWhenDue(connection);
    return ask(connection);
  });
  Lock lock(mutex_);
  kept_ = Kept{glance, commits, now};
  return glance;
}

}  // namespace jobq::mysql

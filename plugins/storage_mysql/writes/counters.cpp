#include "writes/counters.h"

namespace jobq::mysql {
namespace {

std::vector<EndpointId> collectNames(Query& query) {
  std::vector<EndpointId> names;
  while (query.next()) names.push_back(query.text(0));
  return names;
}

}  // namespace

void CounterChanges::persist(Connection& connection, unsigned slot) const {
  for (const auto& [endpoint, tally] : endpoints_) {
    if (tally == Tally{}) continue;
    connection
        .later(
            "INSERT INTO endpoint_count (endpoint, slot, in_queue, in_progress, is_completed, is_failed, "
            "is_cancelled, is_timed_out, in_queue_low, completed, failed, retried, owed, settled) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE "
            "in_queue = in_queue + VALUES(in_queue), in_progress = in_progress + VALUES(in_progress), "
            "is_completed = is_completed + VALUES(is_completed), is_failed = is_failed + VALUES(is_failed), "
            "is_cancelled = is_cancelled + VALUES(is_cancelled), "
            "is_timed_out = is_timed_out + VALUES(is_timed_out), "
            "in_queue_low = in_queue_low + VALUES(in_queue_low), completed = completed + VALUES(completed), "
            "failed = failed + VALUES(failed), retried = retried + VALUES(retried), "
            "owed = owed + VALUES(owed), settled = settled + VALUES(settled)")
        .add(endpoint, slot, tally.jobs[0], tally.jobs[1], tally.jobs[2], tally.jobs[3], tally.jobs[4], tally.jobs[5],
             tally.queuedLow, tally.completed, tally.failed, tally.retried, tally.owed, tally.settled);
  }
}

namespace {

constexpr std::size_t kTallyColumns = 12;
#define JOBQ_MYSQL_SUMS                                                                          \
  "SUM(in_queue), SUM(in_progress), SUM(is_completed), SUM(is_failed), SUM(is_cancelled), "      \
  "SUM(is_timed_out), SUM(in_queue_low), SUM(completed), SUM(failed), SUM(retried), SUM(owed), " \
  "SUM(settled)"

Tally tallyOf(const CurrentRow& columns) {
  Tally tally;
  for (std::size_t state = 0; state < sql::kStates; ++state) tally.jobs[state] = columns.integer(state);
  tally.queuedLow = columns.integer(6);
  tally.completed = columns.integer(7);
  tally.failed = columns.integer(8);
  tally.retried = columns.integer(9);
  tally.owed = columns.integer(10);
  tally.settled = columns.integer(11);
  return tally;
}

}  // namespace

Tally readTally(Connection& connection, std::string_view endpoint) {
  Query query = connection.query("SELECT " JOBQ_MYSQL_SUMS " FROM endpoint_count WHERE endpoint = ?");
  return query.bind(endpoint).next() ? tallyOf(query) : Tally{};
}

std::map<EndpointId, Tally> readTallies(Connection& connection) {
  Query query = connection.query("SELECT " JOBQ_MYSQL_SUMS ", endpoint FROM endpoint_count GROUP BY endpoint");
  std::map<EndpointId, Tally> tallies;
  while (query.next()) tallies.emplace(query.text(kTallyColumns), tallyOf(query));
  return tallies;
}

std::vector<QueuedEndpoint> endpointsWithQueue(Connection& connection) {
  Query query = connection.query(
      "SELECT endpoint, SUM(in_queue) > SUM(in_queue_low) FROM endpoint_count GROUP BY endpoint HAVING SUM(in_queue) > "
      "0");
  std::vector<QueuedEndpoint> queued;
  while (query.next()) queued.push_back({query.text(0), query.flag(1)});
  return queued;
}

std::vector<EndpointId> endpointsOwing(Connection& connection) {
  Query query =
      connection.query("SELECT endpoint FROM endpoint_count GROUP BY endpoint HAVING SUM(owed) > 0 ORDER BY endpoint");
  return collectNames(query);
}

// A row without any number left adds nothing to a sum, whichever transactions run at the same time.
void forgetTotals(Connection& connection, std::string_view endpoint) {
  connection.query("UPDATE endpoint_count SET completed = 0, failed = 0, retried = 0 WHERE endpoint = ?")
      .bind(endpoint)
      .run();
  connection
      .query(
          "DELETE FROM endpoint_count WHERE endpoint = ? AND in_queue = 0 AND in_progress = 0 AND "
          "is_completed = 0 AND is_failed = 0 AND is_cancelled = 0 AND is_timed_out = 0 AND in_queue_low = 0 AND "
          "owed = 0 AND settled = 0")
      .bind(endpoint)
      .run();
}

}  // namespace jobq::mysql

// The statements of the store of owed webhooks (`storage_sql/outbox.h`).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "connection/connection.h"
#include "connection/database_clock.h"
#include "connection/statement.h"
#include "delivery_rows.h"
#include "jobq/job.h"
#include "jobq/outbox_store.h"
#include "reads/glance.h"
#include "reads/readers.h"
#include "storage_sql/outbox.h"
#include "writes/counters.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// The columns of a delivery, in the order of reading in sql::deliveryOf().
#define JOBQ_MYSQL_DELIVERY                                                  \
  "num, id, endpoint, job, state, due_at, url, job_state, attempt, losses, " \
  "retries, low, submitted_at, queued_at, started_at, finished_at, expires_at, worker, error, host, tries, claims"

/// Everything here outlives the store.
struct OutboxRows {
  using Snapshot = mysql::Snapshot;
  using Due = sql::Due;

  Writer& writer;
  Readers& readers;
  const DatabaseClock& clock;
  Glances& glances;

  static constexpr char kNextHost[] =
      "SELECT host, due_at FROM delivery FORCE INDEX (delivery_due) WHERE state = 0 AND host > ? "
      "ORDER BY host, due_at LIMIT 1";
  static constexpr char kDueOfHost[] =
      "SELECT due_at, num FROM delivery FORCE INDEX (delivery_due) "
      "WHERE state = 0 AND host = ? AND due_at <= ? ORDER BY due_at, num LIMIT ?";
  static constexpr char kLockDue[] =
      "SELECT " JOBQ_MYSQL_DELIVERY " FROM delivery WHERE num = ? AND state = 0 AND due_at <= ? FOR UPDATE SKIP LOCKED";
  static constexpr char kClaim[] = "UPDATE delivery SET due_at = ?, claims = ? WHERE num = ?";
  static constexpr char kLockDelivery[] =
      "SELECT num, endpoint, state, claims, tries, IFNULL(settled_at > ?, 1) FROM delivery WHERE id = ? FOR UPDATE";
  static constexpr char kSettle[] = "UPDATE delivery SET state = ?, settled_at = ? WHERE num = ?";
  static constexpr char kReschedule[] = "UPDATE delivery SET due_at = ? WHERE id = ? AND state = 0 AND claims = ?";
  static constexpr char kCountTry[] = "UPDATE delivery SET tries = tries + 1 WHERE num = ?";
  static constexpr char kReplay[] =
      "UPDATE delivery SET state = 0, due_at = ?, owed_at = ?, settled_at = NULL, tries = 0, claims = claims + 1 "
      "WHERE num = ?";
  static constexpr char kList[] = "SELECT " JOBQ_MYSQL_DELIVERY
                                  " FROM delivery FORCE INDEX (delivery_of_endpoint) WHERE endpoint = ? AND ? = '' AND "
                                  "IFNULL(settled_at > ?, 1) ORDER BY num DESC LIMIT ?";
  static constexpr char kListOfState[] = "SELECT " JOBQ_MYSQL_DELIVERY
                                         " FROM delivery FORCE INDEX (PRIMARY) WHERE ? IN (endpoint, '') AND state = ? "
                                         "AND IFNULL(settled_at > ?, 1) ORDER BY num DESC LIMIT ?";
  static constexpr char kListOfJob[] =
      "SELECT " JOBQ_MYSQL_DELIVERY
      " FROM delivery FORCE INDEX (delivery_of_job) WHERE ? IN (endpoint, '') AND job = ? AND "
      "IFNULL(settled_at > ?, 1) ORDER BY num LIMIT ?";
  static constexpr char kAttempts[] =
      "SELECT made_at, http_status, duration, reason, IF(?, reply, '') FROM delivery_attempt WHERE num = ? "
      "ORDER BY id";
  static constexpr char kOldestOwedAt[] =
      "SELECT owed_at FROM delivery FORCE INDEX (delivery_owed) WHERE endpoint = ? AND state = 0 "
      "ORDER BY owed_at LIMIT 1";
  /// A delivery that another transaction is about to end is awaited.
  static constexpr char kLockOldestOwed[] =
      "SELECT num, owed_at, due_at <= ? AND (tries = 0 OR (SELECT reason FROM delivery_attempt AS a "
      "WHERE a.num = delivery.num ORDER BY id DESC LIMIT 1) <> '') "
      "FROM delivery FORCE INDEX (delivery_owed) WHERE endpoint = ? AND state = 0 ORDER BY owed_at, num LIMIT ? "
      "FOR UPDATE";

  bool mayOwe() const { return glances.read(kOldGlance).owesWebhooks; }
  std::vector<EndpointId> owing() const {
    if (!mayOwe()) return {};
    return readers.read([](Connection& connection) { return endpointsOwing(connection); });
  }
  std::int64_t owed(Connection& connection, std::string_view endpoint) const {
    return readTally(connection, endpoint).owed;
  }
  /// Counts `number` owed deliveries as settled; a negative number counts settled ones as owed.
  void countSettled(Step& step, const EndpointId& endpoint, std::int64_t number) const {
    step.counters.owes(endpoint, -number);
    step.counters.settled(endpoint, number);
  }

  void readBodies(Connection& connection, Due& due) const {
    Query query = connection.query("SELECT output, input FROM delivery_body WHERE num = ?");
    if (!query.bind(due.num).next()) return;
    due.output = query.text(0);
    due.input = query.text(1);
  }
  void readFiles(const std::vector<Due>&) const {}
  bool isReadable(Step&, const Due&, const Delivery&) const { return true; }
};

}  // namespace jobq::mysql

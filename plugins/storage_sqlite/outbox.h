// The statements of the store of owed webhooks (`storage_sql/outbox.h`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bodies/body_files.h"
#include "connection.h"
#include "delivery_rows.h"
#include "jobq/job.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"
#include "reads/readers.h"
#include "storage_sql/outbox.h"
#include "writes/counters.h"
#include "writes/step.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// The columns of a delivery, in the order of reading in sql::deliveryOf().
#define JOBQ_DELIVERY_COLUMNS                                                \
  "num, id, endpoint, job, state, due_at, url, job_state, attempt, losses, " \
  "retries, low, submitted_at, queued_at, started_at, finished_at, expires_at, worker, error, host, tries, claims"

/// A due delivery whose bodies may be in files.
struct DueDelivery : sql::Due {
  std::string id;
  BodyFile outputFile;
  BodyFile inputFile;
  std::string damage;  // message of a missing or damaged file
  Millis pause{0};     // until the next read of a body that cannot be read for now

  std::size_t bytes() const { return sql::Due::bytes() + outputFile.size + inputFile.size; }
};

/// Everything here outlives the store.
struct OutboxRows {
  using Snapshot = sqlite::Snapshot;
  using Due = DueDelivery;

  Writer& writer;
  Readers& readers;
  const BodyFiles& files;
  const Counters& counters;
  Clock& clock;

  static constexpr char kNextHost[] =
      "SELECT host, due_at FROM delivery INDEXED BY delivery_due WHERE state = 0 AND host > ?1 "
      "ORDER BY host, due_at LIMIT 1";
  static constexpr char kDueOfHost[] =
      "SELECT due_at, num FROM delivery INDEXED BY delivery_due "
      "WHERE state = 0 AND host = ?1 AND due_at <= ?2 ORDER BY due_at, num LIMIT ?3";
  static constexpr char kLockDue[] =
      "SELECT " JOBQ_DELIVERY_COLUMNS " FROM delivery WHERE num = ?1 AND state = 0 AND due_at <= ?2";
  static constexpr char kClaim[] = "UPDATE delivery SET due_at = ?1, claims = ?2 WHERE num = ?3";
  static constexpr char kLockDelivery[] =
      "SELECT num, endpoint, state, claims, tries, ifnull(settled_at > ?1, 1) FROM delivery WHERE id = ?2";
  static constexpr char kSettle[] = "UPDATE delivery SET state = ?1, settled_at = ?2 WHERE num = ?3";
  static constexpr char kReschedule[] = "UPDATE delivery SET due_at = ?1 WHERE id = ?2 AND state = 0 AND claims = ?3";
  static constexpr char kCountTry[] = "UPDATE delivery SET tries = tries + 1 WHERE num = ?1";
  static constexpr char kReplay[] =
      "UPDATE delivery SET state = 0, due_at = ?1, owed_at = ?2, settled_at = NULL, tries = 0, claims = claims + 1 "
      "WHERE num = ?3";
  static constexpr char kList[] = "SELECT " JOBQ_DELIVERY_COLUMNS
                                  " FROM delivery INDEXED BY delivery_of_endpoint WHERE endpoint = ?1 AND ?2 = '' AND "
                                  "ifnull(settled_at > ?3, 1) ORDER BY num DESC LIMIT ?4";
  static constexpr char kListOfState[] = "SELECT " JOBQ_DELIVERY_COLUMNS
                                         " FROM delivery NOT INDEXED WHERE ?1 IN (endpoint, '') AND state = ?2 AND "
                                         "ifnull(settled_at > ?3, 1) ORDER BY num DESC LIMIT ?4";
  static constexpr char kListOfJob[] =
      "SELECT " JOBQ_DELIVERY_COLUMNS
      " FROM delivery INDEXED BY delivery_of_job WHERE ?1 IN (endpoint, '') AND job = ?2 AND "
      "ifnull(settled_at > ?3, 1) ORDER BY num LIMIT ?4";
  static constexpr char kAttempts[] =
      "SELECT at, status, duration, reason, CASE WHEN ?1 THEN reply ELSE x'' END FROM delivery_attempt WHERE num = ?2 "
      "ORDER BY id";
  static constexpr char kOldestOwedAt[] =
      "SELECT owed_at FROM delivery INDEXED BY delivery_owed WHERE state = 0 AND endpoint = ?1 "
      "ORDER BY owed_at LIMIT 1";
  static constexpr char kLockOldestOwed[] =
      "SELECT num, owed_at, due_at <= ?1 AND (tries = 0 OR (SELECT reason FROM delivery_attempt AS a "
      "WHERE a.num = delivery.num ORDER BY id DESC LIMIT 1) <> '') "
      "FROM delivery INDEXED BY delivery_owed WHERE state = 0 AND endpoint = ?2 ORDER BY owed_at, num LIMIT ?3";

  bool mayOwe() const { return true; }
  std::vector<EndpointId> owing() const { return counters.owing(); }
  std::int64_t owed(Connection&, std::string_view endpoint) const { return counters.of(endpoint).owed; }
  /// Counts `number` owed deliveries as settled; a negative number counts settled ones as owed. The database counts the
  /// settled deliveries.
  void countSettled(Step& step, const EndpointId& endpoint, std::int64_t number) const {
    step.counters.owes(endpoint, -number);
  }

  /// Reads the bodies in the row, and the names of the others.
  void readBodies(Connection& connection, Due& due) const;
  /// Reads the bodies that are in files, without a connection.
  void readFiles(std::vector<Due>& due) const;
  /// Returns whether the locked delivery is the one found due, with readable bodies. Gives up a delivery with a missing
  /// or damaged body, because its call could never be made. A delivery whose body cannot be read for now is due later,
  /// so that it does not keep others back.
  bool isReadable(Step& step, const Due& due, const Delivery& delivery) const;
};

}  // namespace jobq::sqlite

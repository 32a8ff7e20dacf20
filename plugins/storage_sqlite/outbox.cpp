#include "outbox.h"

namespace jobq::sqlite {
namespace {

#define JOBQ_DELIVERY_COLUMNS                                                                  \
  "delivery.num, delivery.id, endpoint, job, state, due_at, url, job_state, attempt, losses, " \
  "retries, low, submitted_at, queued_at, started_at, finished_at, expires_at, worker, error"
constexpr int kDeliveryColumns = 19;

struct NumberedDelivery {
  std::int64_t num = 0;
  Delivery delivery;
};

NumberedDelivery deliveryOf(const Query& query) {
  NumberedDelivery numbered;
  numbered.num = query.integer(0);
  Delivery& delivery = numbered.delivery;
  delivery.id = query.text(1);
  delivery.state = static_cast<DeliveryState>(query.integer(4));
  delivery.dueAt = query.instant(5);
  delivery.url = query.text(6);
  Job& job = delivery.job;
  job.endpoint = query.text(2);
  job.id = query.text(3);
  job.state = query.state(7);
  job.attempt = query.number(8);
  job.losses = query.number(9);
  job.retries = query.number(10);
  job.lowPriority = query.flag(11);
  job.submittedAt = query.instant(12);
  job.queuedAt = query.instant(13);
  job.startedAt = query.instantOrNone(14);
  job.finishedAt = query.instantOrNone(15);
  job.expiresAt = query.instant(16);
  job.workerId = query.text(17);
  job.error = query.text(18);
  return numbered;
}

void readAttempts(Connection& connection, NumberedDelivery& numbered) {
  Query query =
      connection.query("SELECT at, status, duration, reason, reply FROM delivery_attempt WHERE num = ?1 ORDER BY id");
  query.bind(numbered.num);
  while (query.next()) {
    numbered.delivery.attempts.push_back(
        {query.instant(0), static_cast<int>(query.integer(1)), query.millis(2), query.text(3), query.text(4)});
  }
}

std::vector<NumberedDelivery> dueNow(Step& step, std::size_t max) {
  Query query = step.db.query("SELECT " JOBQ_DELIVERY_COLUMNS
                              ", output, input FROM delivery INDEXED BY delivery_due "
                              "JOIN delivery_body USING (num) WHERE state = 0 AND due_at <= ?1 "
                              "ORDER BY due_at, delivery.num LIMIT ?2");
  query.bind(step.now, max);
  std::vector<NumberedDelivery> due;
  while (query.next()) {
    Delivery& delivery = due.emplace_back(deliveryOf(query)).delivery;
    delivery.job.output = query.text(kDeliveryColumns);
    delivery.input = query.text(kDeliveryColumns + 1);
  }
  return due;
}

std::vector<Delivery> claimNow(Step& step, std::size_t max, Millis lease) {
  std::vector<Delivery> claimed;
  for (NumberedDelivery& numbered : dueNow(step, max)) {
    numbered.delivery.dueAt = step.now + lease;
    step.db.query("UPDATE delivery SET due_at = ?2 WHERE num = ?1").bind(numbered.num, numbered.delivery.dueAt).run();
    readAttempts(step.db, numbered);
    claimed.push_back(std::move(numbered.delivery));
  }
  return claimed;
}

/// Keeps an endpoint's settled deliveries within their number.
void dropOldest(Step& step, std::string_view id) {
  std::vector<std::int64_t> surplus;
  {
    Query query = step.db.query(
        "SELECT num FROM delivery INDEXED BY delivery_by_endpoint WHERE settled_at IS NOT NULL AND "
        "endpoint = (SELECT endpoint FROM delivery WHERE id = ?1) "
        "ORDER BY settled_at DESC, num DESC LIMIT -1 OFFSET ?2");
    query.bind(id, kMaxDeliveriesPerEndpoint);
    while (query.next()) surplus.push_back(query.integer(0));
  }
  for (const std::int64_t num : surplus) {
    step.db.query("DELETE FROM delivery_attempt WHERE num = ?1").bind(num).run();
    step.db.query("DELETE FROM delivery_body WHERE num = ?1").bind(num).run();
    step.db.query("DELETE FROM delivery WHERE num = ?1").bind(num).run();
  }
}

}  // namespace

// Couriers ask often: the writer is bothered only when something is due.
std::vector<Delivery> Outbox::claimDue(std::size_t max, Millis lease) {
  const bool any = readers_.read([&](Connection& connection) {
    Query query =
        connection.query("SELECT 1 FROM delivery INDEXED BY delivery_due WHERE state = 0 AND due_at <= ?1 LIMIT 1");
    return query.bind(clock_.now()).next();
  });
  if (!any) return {};
  return writer_.write([&](Step& step) { return claimNow(step, max, lease); });
}

bool Outbox::settle(std::string_view id, DeliveryState state) {
  if (state == DeliveryState::owed) return false;
  return writer_.write([&](Step& step) {
    const bool settled = step.db.query("UPDATE delivery SET state = ?2, settled_at = ?3 WHERE id = ?1 AND state = 0")
                             .bind(id, static_cast<int>(state), step.now)
                             .change() == 1;
    if (settled) dropOldest(step, id);
    return settled;
  });
}

bool Outbox::reschedule(std::string_view id, Millis delay) {
  return writer_.write([&](Step& step) {
    return step.db.query("UPDATE delivery SET due_at = ?2 WHERE id = ?1 AND state = 0")
               .bind(id, step.now + delay)
               .change() == 1;
  });
}

bool Outbox::recordAttempt(std::string_view id, DeliveryAttempt attempt) {
  return writer_.write([&](Step& step) {
    return step.db
               .query(
                   "INSERT INTO delivery_attempt (num, at, status, duration, reason, reply) "
                   "SELECT num, ?2, ?3, ?4, ?5, ?6 FROM delivery WHERE id = ?1 AND ifnull(settled_at > ?7, 1)")
               .bind(id, step.now, attempt.status, attempt.duration, attempt.reason, Bytes{attempt.reply},
                     step.now - kDeliveryRecordLife)
               .change() == 1;
  });
}

std::vector<Delivery> Outbox::list(std::string_view endpoint, std::string_view job, std::size_t limit) {
  return readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    const Instant oldest = clock_.now() - kDeliveryRecordLife;
    std::vector<Delivery> listed;
    Query query = connection.query(
        job.empty() ? "SELECT " JOBQ_DELIVERY_COLUMNS
                      " FROM delivery INDEXED BY delivery_of_endpoint WHERE endpoint = ?1 AND ?2 = '' AND "
                      "ifnull(settled_at > ?3, 1) ORDER BY num DESC LIMIT ?4"
                    : "SELECT " JOBQ_DELIVERY_COLUMNS
                      " FROM delivery INDEXED BY delivery_of_job WHERE endpoint = ?1 AND job = ?2 AND "
                      "ifnull(settled_at > ?3, 1) ORDER BY num LIMIT ?4");
    query.bind(endpoint, job, oldest, limit);
    while (query.next()) {
      NumberedDelivery numbered = deliveryOf(query);
      readAttempts(connection, numbered);
      listed.push_back(std::move(numbered.delivery));
    }
    return listed;
  });
}

bool Outbox::replay(std::string_view id) {
  return writer_.write([&](Step& step) {
    return step.db
               .query(
                   "UPDATE delivery SET state = 0, due_at = ?2, settled_at = NULL "
                   "WHERE id = ?1 AND ifnull(settled_at > ?3, 1)")
               .bind(id, step.now, step.now - kDeliveryRecordLife)
               .change() == 1;
  });
}

}  // namespace jobq::sqlite

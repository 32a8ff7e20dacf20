#include "outbox.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace jobq::sqlite {
namespace {

#define JOBQ_DELIVERY_COLUMNS                                                \
  "num, id, endpoint, job, state, due_at, url, job_state, attempt, losses, " \
  "retries, low, submitted_at, queued_at, started_at, finished_at, expires_at, worker, error, host, tries"

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
  delivery.host = query.text(19);
  delivery.tries = query.number(20);
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

/// An owed delivery that is due, and what a call needs of it beside its row. Its bodies never change, so they are read
/// beside the writer: they may have 20 MB each.
struct Due {
  Instant at{};
  std::int64_t num = 0;
  std::string id;
  std::string output;
  std::string input;
};

/// The first host from `from` on, in the order of their names, to which something is owed.
std::optional<std::string> nextHost(Connection& connection, std::string_view from) {
  Query query = connection.query(
      "SELECT host FROM delivery INDEXED BY delivery_due WHERE state = 0 AND host >= ?1 ORDER BY host LIMIT 1");
  query.bind(from);
  return query.next() ? std::optional(query.text(0)) : std::nullopt;
}

/// The beginning of one host's line.
void addDueOf(Connection& connection, std::string_view host, Instant now, std::size_t max, std::vector<Due>& due) {
  Query query = connection.query(
      "SELECT due_at, num FROM delivery INDEXED BY delivery_due "
      "WHERE state = 0 AND host = ?1 AND due_at <= ?2 ORDER BY due_at, num LIMIT ?3");
  query.bind(host, now, max);
  while (query.next()) due.push_back({query.instant(0), query.integer(1), {}, {}, {}});
}

/// The front of everybody's line. True: nobody who is due and not passed over is missing in `due`.
bool glance(Connection& connection, Instant now, std::size_t max, std::span<const std::string> except,
            std::vector<Due>& due) {
  constexpr std::size_t kGlance = 1'000;
  Query query = connection.query(
      "SELECT due_at, num, host FROM delivery INDEXED BY delivery_first "
      "WHERE state = 0 AND due_at <= ?1 ORDER BY due_at, num LIMIT ?2");
  query.bind(now, kGlance);
  std::size_t seen = 0;
  for (; due.size() < max && query.next(); ++seen) {
    if (std::find(except.begin(), except.end(), query.text(2)) != except.end()) continue;
    due.push_back({query.instant(0), query.integer(1), {}, {}, {}});
  }
  return due.size() == max || seen < kGlance;
}

/// From host to host, so that 100,000 deliveries to one that is passed over cost one step.
std::vector<Due> findDue(Connection& connection, Instant now, std::size_t max, std::span<const std::string> except) {
  std::vector<Due> due;
  if (glance(connection, now, max, except, due)) return due;
  due.clear();
  for (auto host = nextHost(connection, ""); host; host = nextHost(connection, *host + '\0')) {
    if (std::find(except.begin(), except.end(), *host) == except.end()) addDueOf(connection, *host, now, max, due);
  }
  std::sort(due.begin(), due.end(),
            [](const Due& a, const Due& b) { return std::tie(a.at, a.num) < std::tie(b.at, b.num); });
  if (due.size() > max) due.erase(due.begin() + static_cast<std::ptrdiff_t>(max), due.end());
  return due;
}

void readBodies(Connection& connection, Due& due) {
  Query query =
      connection.query("SELECT id, output, input FROM delivery LEFT JOIN delivery_body USING (num) WHERE num = ?1");
  if (!query.bind(due.num).next()) return;
  due.id = query.text(0);
  due.output = query.text(1);
  due.input = query.text(2);
}

/// The claimed one, without its bodies; nothing when somebody else was faster.
std::optional<Delivery> claimNow(Step& step, const Due& due, Millis lease) {
  const bool claimed =
      step.db.query("UPDATE delivery SET due_at = ?3 WHERE num = ?1 AND id = ?2 AND state = 0 AND due_at <= ?4")
          .bind(due.num, due.id, step.now + lease, step.now)
          .change() == 1;
  if (!claimed) return std::nullopt;
  NumberedDelivery numbered;
  {
    Query query = step.db.query("SELECT " JOBQ_DELIVERY_COLUMNS " FROM delivery WHERE num = ?1");
    query.bind(due.num).next();
    numbered = deliveryOf(query);
  }
  readAttempts(step.db, numbered);
  return std::move(numbered.delivery);
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

// Couriers ask often: the writer is bothered only when something is due, and then only with its rows. Somebody else may
// have claimed them in between.
std::vector<Delivery> Outbox::claimDue(std::size_t max, Millis lease, std::span<const std::string> exceptHosts) {
  for (;;) {
    std::vector<Due> due = readers_.read([&](Connection& connection) {
      const Snapshot snapshot(connection);
      std::vector<Due> found = findDue(connection, clock_.now(), max, exceptHosts);
      std::size_t bytes = 0;
      for (auto each = found.begin(); each != found.end(); ++each) {
        if (bytes >= kMaxClaimedBytes) {
          found.erase(each, found.end());
          break;
        }
        readBodies(connection, *each);
        bytes += each->output.size() + each->input.size();
      }
      return found;
    });
    if (due.empty()) return {};
    const auto rows = writer_.write([&](Step& step) {
      std::vector<std::optional<Delivery>> claimed;
      claimed.reserve(due.size());
      for (const Due& each : due) claimed.push_back(claimNow(step, each, lease));
      return claimed;
    });
    std::vector<Delivery> deliveries;
    for (std::size_t i = 0; i < due.size(); ++i) {
      if (!rows[i]) continue;
      Delivery& delivery = deliveries.emplace_back(*rows[i]);
      delivery.job.output = std::move(due[i].output);
      delivery.input = std::move(due[i].input);
    }
    if (!deliveries.empty()) return deliveries;
  }
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
    const Instant oldest = step.now - kDeliveryRecordLife;
    const bool known =
        step.db.query("UPDATE delivery SET tries = tries + 1 WHERE id = ?1 AND ifnull(settled_at > ?2, 1)")
            .bind(id, oldest)
            .change() == 1;
    if (!known) return false;
    return step.db
               .query(
                   "INSERT INTO delivery_attempt (num, at, status, duration, reason, reply) "
                   "SELECT num, ?2, ?3, ?4, ?5, ?6 FROM delivery WHERE id = ?1")
               .bind(id, step.now, attempt.status, attempt.duration, attempt.reason, Bytes{attempt.reply})
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
                      " FROM delivery INDEXED BY delivery_of_job WHERE ?1 IN (endpoint, '') AND job = ?2 AND "
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
                   "UPDATE delivery SET state = 0, due_at = ?2, settled_at = NULL, tries = 0 "
                   "WHERE id = ?1 AND ifnull(settled_at > ?3, 1)")
               .bind(id, step.now, step.now - kDeliveryRecordLife)
               .change() == 1;
  });
}

}  // namespace jobq::sqlite

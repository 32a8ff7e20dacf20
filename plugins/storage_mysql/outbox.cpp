#include "outbox.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "delivery_rows.h"
#include "storage_sql/rows.h"

namespace jobq::mysql {
namespace {

/// Most old deliveries deleted when a delivery is settled. The usual number is 1; a larger backlog is worked off by
/// later deliveries.
constexpr std::size_t kMostDropped = 16;

/// The columns of a delivery, in the order of reading in sql::deliveryOf().
#define JOBQ_MYSQL_DELIVERY                                                  \
  "num, id, endpoint, job, state, due_at, url, job_state, attempt, losses, " \
  "retries, low, submitted_at, queued_at, started_at, finished_at, expires_at, worker, error, host, tries, claims"

void readAttempts(Connection& connection, sql::NumberedDelivery& numbered, bool withReplies = true) {
  Query query = connection.query(
      "SELECT made_at, http_status, duration, reason, IF(?, reply, '') FROM delivery_attempt WHERE num = ? "
      "ORDER BY id");
  query.bind(withReplies, numbered.num);
  sql::readAttempts(query, numbered.delivery.attempts);
}

/// An owed and due delivery, with the parts needed for a call beside the row. Bodies never change and may have 20 MB
/// each, so a read connection reads the bodies, not the writer.
struct Due {
  std::size_t turn = 0;  // position among the deliveries of the same host
  Instant at{};
  std::int64_t num = 0;
  std::string output;
  std::string input;
};

/// A host with owed deliveries, and the moment when its first delivery is due.
struct OwedHost {
  std::string host;
  Instant firstDue{};
};

/// Returns the first host after `after` in the order of names, if any.
std::optional<OwedHost> nextHost(Connection& connection, std::string_view after) {
  Query query = connection.query(
      "SELECT host, due_at FROM delivery FORCE INDEX (delivery_due) WHERE state = 0 AND host > ? "
      "ORDER BY host, due_at LIMIT 1");
  query.bind(after);
  if (!query.next()) return std::nullopt;
  return OwedHost{query.text(0), query.instant(1)};
}

void addDueOf(Connection& connection, const HostPlaces& host, Instant now, std::vector<Due>& due) {
  Query query = connection.query(
      "SELECT due_at, num FROM delivery FORCE INDEX (delivery_due) "
      "WHERE state = 0 AND host = ? AND due_at <= ? ORDER BY due_at, num LIMIT ?");
  query.bind(host.host, now, host.places);
  for (std::size_t turn = 0; query.next(); ++turn) due.push_back({turn, query.instant(0), query.integer(1), {}, {}});
}

std::vector<Due> findDue(Connection& connection, Instant now, std::span<const HostPlaces> hosts) {
  std::vector<Due> due;
  for (const HostPlaces& host : hosts) addDueOf(connection, host, now, due);
  std::sort(due.begin(), due.end(),
            [](const Due& a, const Due& b) { return std::tie(a.turn, a.at, a.num) < std::tie(b.turn, b.at, b.num); });
  return due;
}

void readBodies(Connection& connection, Due& due) {
  Query query = connection.query("SELECT output, input FROM delivery_body WHERE num = ?");
  if (!query.bind(due.num).next()) return;
  due.output = query.text(0);
  due.input = query.text(1);
}

/// Returns the due deliveries with their bodies, up to kMaxClaimedBytes.
std::vector<Due> readDue(Connection& connection, Instant now, std::span<const HostPlaces> hosts) {
  const Snapshot snapshot(connection);
  std::vector<Due> found = findDue(connection, now, hosts);
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
}

/// Returns the claimed delivery without its bodies, or no value if a second caller was faster.
std::optional<Delivery> claimNow(Step& step, const Due& due, Millis lease) {
  sql::NumberedDelivery numbered;
  {
    Query query = step.db.query("SELECT " JOBQ_MYSQL_DELIVERY
                                " FROM delivery WHERE num = ? AND state = 0 AND due_at <= ? FOR UPDATE SKIP LOCKED");
    if (!query.bind(due.num, step.now).next()) return std::nullopt;
    numbered = sql::deliveryOf(query);
  }
  numbered.delivery.dueAt = step.now + lease;
  ++numbered.delivery.claims;
  step.db.query("UPDATE delivery SET due_at = ?, claims = ? WHERE num = ?")
      .bind(numbered.delivery.dueAt, numbered.delivery.claims, due.num)
      .run();
  readAttempts(step.db, numbered);
  return std::move(numbered.delivery);
}

/// The locked row of a delivery, as far as reports need the row.
struct ReportedRow {
  std::int64_t num = 0;
  EndpointId endpoint;
  DeliveryState state = DeliveryState::owed;
  std::uint64_t claims = 0;
  std::uint32_t tries = 0;
  bool isListed = false;  // the delivery is owed, or ended less than a day ago

  bool isOwedUnder(const DeliveryClaim& claim) const { return state == DeliveryState::owed && claims == claim.number; }
};

std::optional<ReportedRow> lockDelivery(Step& step, std::string_view id) {
  Query query = step.db.query(
      "SELECT num, endpoint, state, claims, tries, IFNULL(settled_at > ?, 1) FROM delivery WHERE id = ? FOR UPDATE");
  if (!query.bind(step.now - kDeliveryRecordLife, id).next()) return std::nullopt;
  return ReportedRow{query.integer(0), query.text(1),   static_cast<DeliveryState>(query.integer(2)),
                     query.count(3),   query.number(4), query.flag(5)};
}

}  // namespace

DueHosts Outbox::dueHosts(std::string_view after, std::size_t max) {
  if (!glances_.read(kOldGlance).owesWebhooks) return {};
  return readers_.read([&](Connection& connection) {
    const Instant now = clock_.now();
    DueHosts page;
    page.next = after;
    auto owed = nextHost(connection, after);
    for (std::size_t seen = 0; owed && seen < max; ++seen) {
      if (owed->firstDue <= now) page.hosts.push_back(owed->host);
      page.next = std::move(owed->host);
      owed = nextHost(connection, page.next);
    }
    if (!owed) page.next.clear();
    return page;
  });
}

// A second caller may have claimed the rows between the read and the step, and then the call looks for others.
std::vector<Delivery> Outbox::claimDue(std::span<const HostPlaces> hosts, Millis lease) {
  for (;;) {
    std::vector<Due> due =
        readers_.read([&](Connection& connection) { return readDue(connection, clock_.now(), hosts); });
    if (due.empty()) return {};
    auto rows = writer_.write([&](Step& step) {
      std::vector<std::optional<Delivery>> claimed;
      claimed.reserve(due.size());
      for (const Due& each : due) claimed.push_back(claimNow(step, each, lease));
      return claimed;
    });
    std::vector<Delivery> deliveries;
    for (std::size_t i = 0; i < due.size(); ++i) {
      if (!rows[i]) continue;
      Delivery& delivery = deliveries.emplace_back(std::move(*rows[i]));
      delivery.job.output = std::move(due[i].output);
      delivery.input = std::move(due[i].input);
    }
    if (!deliveries.empty()) return deliveries;
  }
}

bool Outbox::finishDelivery(const DeliveryClaim& claim, DeliveryState state) {
  if (state == DeliveryState::owed) return false;
  return writer_.write([&](Step& step) {
    const auto row = lockDelivery(step, claim.id);
    if (!row || row->claims != claim.number || !row->isListed) return false;
    if (row->state != DeliveryState::owed) return row->state == state;  // the call is repeated
    step.db.query("UPDATE delivery SET state = ?, settled_at = ? WHERE num = ?")
        .bind(static_cast<int>(state), step.now, row->num)
        .run();
    step.counters.owes(row->endpoint, -1);
    step.counters.settled(row->endpoint, 1);
    dropOldest(step, row->endpoint, kMostDropped);
    return true;
  });
}

bool Outbox::reschedule(const DeliveryClaim& claim, Millis delay) {
  return writer_.write([&](Step& step) {
    return step.db.query("UPDATE delivery SET due_at = ? WHERE id = ? AND state = 0 AND claims = ?")
               .bind(step.now + delay, claim.id, claim.number)
               .run() == 1;
  });
}

bool Outbox::recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) {
  return writer_.write([&](Step& step) {
    const auto row = lockDelivery(step, claim.id);
    if (!row || !row->isOwedUnder(claim)) return false;
    // A repeated call finds its number as the last number.
    if (number != row->tries + 1) return number > 0 && number == row->tries;
    step.db.query("UPDATE delivery SET tries = tries + 1 WHERE num = ?").bind(row->num).run();
    addAttempt(step, row->num, attempt);
    return true;
  });
}

std::vector<Delivery> Outbox::list(std::string_view endpoint, std::string_view job, std::size_t limit) {
  return readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    const Instant oldest = clock_.now() - kDeliveryRecordLife;
    std::vector<Delivery> listed;
    Query query = connection.query(
        job.empty() ? "SELECT " JOBQ_MYSQL_DELIVERY
                      " FROM delivery FORCE INDEX (delivery_of_endpoint) WHERE endpoint = ? AND ? = '' AND "
                      "IFNULL(settled_at > ?, 1) ORDER BY num DESC LIMIT ?"
                    : "SELECT " JOBQ_MYSQL_DELIVERY
                      " FROM delivery FORCE INDEX (delivery_of_job) WHERE ? IN (endpoint, '') AND job = ? AND "
                      "IFNULL(settled_at > ?, 1) ORDER BY num LIMIT ?");
    query.bind(endpoint, job, oldest, limit);
    while (query.next()) {
      sql::NumberedDelivery numbered = sql::deliveryOf(query);
      numbered.delivery.job.error = listedError(numbered.delivery.job.error);
      readAttempts(connection, numbered, !job.empty());
      listed.push_back(std::move(numbered.delivery));
    }
    return listed;
  });
}

bool Outbox::replay(std::string_view id) {
  return writer_.write([&](Step& step) {
    const auto row = lockDelivery(step, id);
    if (!row || !row->isListed) return false;
    step.db
        .query(
            "UPDATE delivery SET state = 0, due_at = ?, owed_at = ?, settled_at = NULL, tries = 0, "
            "claims = claims + 1 WHERE num = ?")
        .bind(step.now, step.now, row->num)
        .run();
    if (row->state != DeliveryState::owed) {
      step.counters.owes(row->endpoint, 1);
      step.counters.settled(row->endpoint, -1);
    }
    return true;
  });
}

}  // namespace jobq::mysql

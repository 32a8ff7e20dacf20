#include "outbox.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <tuple>
#include <utility>

#include "delivery_rows.h"
#include "storage_sql/rows.h"

namespace jobq::sqlite {
namespace {

/// Most old deliveries deleted when a delivery is settled. The usual number is 1; a larger backlog is worked off by
/// later deliveries.
constexpr std::size_t kMostDropped = 16;

/// Pause of a delivery whose body cannot be read for now, by a fault of its file or of this machine.
constexpr Millis kUnreadablePause{60'000};
constexpr Millis kMachinePause{1'000};

/// The columns of a delivery, in the order of reading in sql::deliveryOf().
#define JOBQ_DELIVERY_COLUMNS                                                \
  "num, id, endpoint, job, state, due_at, url, job_state, attempt, losses, " \
  "retries, low, submitted_at, queued_at, started_at, finished_at, expires_at, worker, error, host, tries, claims"

void readAttempts(Connection& connection, sql::NumberedDelivery& numbered, bool withReplies = true) {
  Query query = connection.query(
      "SELECT at, status, duration, reason, CASE WHEN ?2 THEN reply ELSE x'' END FROM delivery_attempt WHERE num = ?1 "
      "ORDER BY id");
  query.bind(numbered.num, withReplies ? 1 : 0);
  sql::readAttempts(query, numbered.delivery.attempts);
}

/// An owed and due delivery, with the parts needed for a call beside the row. Bodies never change and may have 20 MB
/// each, so a read connection reads the bodies, not the writer.
struct Due {
  std::size_t turn = 0;  // position among the deliveries of the same host
  Instant at{};
  std::int64_t num = 0;
  std::string id;
  std::string output;
  std::string input;
  BodyFile outputFile;
  BodyFile inputFile;
  std::string damage;  // message of a missing or damaged file
  Millis pause{0};     // until the next read of a body that cannot be read for now

  std::size_t bytes() const { return output.size() + input.size() + outputFile.size + inputFile.size; }
};

/// A host with owed deliveries, and the moment when its first delivery is due.
struct OwedHost {
  std::string host;
  Instant firstDue{};
};
/// Returns the first host after `after` in the order of names, if any.
std::optional<OwedHost> nextHost(Connection& connection, std::string_view after) {
  Query query = connection.query(
      "SELECT host, due_at FROM delivery INDEXED BY delivery_due WHERE state = 0 AND host > ?1 "
      "ORDER BY host, due_at LIMIT 1");
  query.bind(after);
  if (!query.next()) return std::nullopt;
  return OwedHost{query.text(0), query.instant(1)};
}

void addDueOf(Connection& connection, const HostPlaces& host, Instant now, std::vector<Due>& due) {
  Query query = connection.query(
      "SELECT due_at, num FROM delivery INDEXED BY delivery_due "
      "WHERE state = 0 AND host = ?1 AND due_at <= ?2 ORDER BY due_at, num LIMIT ?3");
  query.bind(host.host, now, host.places);
  for (std::size_t turn = 0; query.next(); ++turn)
    due.push_back({turn, query.instant(0), query.integer(1), {}, {}, {}, {}, {}, {}});
}

std::vector<Due> findDue(Connection& connection, Instant now, std::span<const HostPlaces> hosts) {
  std::vector<Due> due;
  for (const HostPlaces& host : hosts) addDueOf(connection, host, now, due);
  std::sort(due.begin(), due.end(),
            [](const Due& a, const Due& b) { return std::tie(a.turn, a.at, a.num) < std::tie(b.turn, b.at, b.num); });
  return due;
}

void readRow(Connection& connection, Due& due) {
  Query query = connection.query(
      "SELECT delivery.id, output, input, output_file, o.size, input_file, i.size FROM delivery "
      "LEFT JOIN delivery_body USING (num) LEFT JOIN body_file AS o ON o.id = output_file "
      "LEFT JOIN body_file AS i ON i.id = input_file WHERE num = ?1");
  if (!query.bind(due.num).next()) return;
  due.id = query.text(0);
  due.output = query.text(1);
  due.input = query.text(2);
  due.outputFile = bodyFileAt(query, 3);
  due.inputFile = bodyFileAt(query, 5);
}

/// Reads the bodies that are in files, without a connection.
void readFiles(const BodyFiles& files, Due& due) {
  const auto read = [&files](const BodyFile& file, std::string& body) {
    if (!file.isFile()) return;
    auto bytes = files.read(file);
    if (!bytes) throw files.missingError(file);
    body = std::move(*bytes);
  };
  try {
    read(due.outputFile, due.output);
    read(due.inputFile, due.input);
  } catch (const DamagedBody& error) {
    due.damage = error.what();
  } catch (const UnreadableBody&) {
    due.pause = kUnreadablePause;
  } catch (const std::exception&) {
    due.pause = kMachinePause;  // too few descriptors, or too little memory
  }
}

/// Moves an owed and due delivery whose body cannot be read for now, so that it does not keep others back.
void postpone(Step& step, const Due& due) {
  step.db.query("UPDATE delivery SET due_at = ?3 WHERE num = ?1 AND id = ?2 AND state = 0 AND due_at <= ?4")
      .bind(due.num, due.id, step.now + due.pause, step.now)
      .run();
}

/// Gives up an owed and due delivery whose body is damaged.
void giveUp(Step& step, const Due& due) {
  EndpointId endpoint;
  {
    Query query =
        step.db.query("SELECT endpoint FROM delivery WHERE num = ?1 AND id = ?2 AND state = 0 AND due_at <= ?3");
    if (!query.bind(due.num, due.id, step.now).next()) return;
    endpoint = query.text(0);
  }
  step.db.query("UPDATE delivery SET state = ?2, settled_at = ?3 WHERE num = ?1")
      .bind(due.num, static_cast<int>(DeliveryState::abandoned), step.now)
      .run();
  addAttempt(step, due.num, {{}, 0, Millis(0), due.damage, {}});
  step.counters.owes(endpoint, -1);
  dropOldest(step, endpoint, 1);
}

/// Returns the claimed delivery without its bodies, or no value if a second caller was faster.
std::optional<Delivery> claimNow(Step& step, const Due& due, Millis lease) {
  const bool claimed = step.db
                           .query(
                               "UPDATE delivery SET due_at = ?3, claims = claims + 1 "
                               "WHERE num = ?1 AND id = ?2 AND state = 0 AND due_at <= ?4")
                           .bind(due.num, due.id, step.now + lease, step.now)
                           .change() == 1;
  if (!claimed) return std::nullopt;
  sql::NumberedDelivery numbered;
  {
    Query query = step.db.query("SELECT " JOBQ_DELIVERY_COLUMNS " FROM delivery WHERE num = ?1");
    query.bind(due.num).next();
    numbered = sql::deliveryOf(query);
  }
  readAttempts(step.db, numbered);
  return std::move(numbered.delivery);
}

/// Returns whether the delivery is listed as ended in `state`, and `claim` is its last claim.
bool hasEnded(Step& step, const DeliveryClaim& claim, DeliveryState state) {
  return step.db.query("SELECT 1 FROM delivery WHERE id = ?1 AND state = ?2 AND claims = ?3 AND settled_at > ?4")
      .bind(claim.id, static_cast<int>(state), claim.number, step.now - kDeliveryRecordLife)
      .next();
}

}  // namespace

DueHosts Outbox::dueHosts(std::string_view after, std::size_t max) {
  return readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    const Instant now = clock_.now();
    DueHosts page;
    page.next = after;
    for (std::size_t seen = 0; seen < max; ++seen) {
      auto owed = nextHost(connection, page.next);
      if (!owed) break;
      if (owed->firstDue <= now) page.hosts.push_back(owed->host);
      page.next = std::move(owed->host);
    }
    if (!nextHost(connection, page.next)) page.next.clear();
    return page;
  });
}

// A read connection does the reading, and the writer gets only the rows to change. A second caller may have claimed or
// settled the rows in between. A delivery with a missing or damaged body is given up: its call could never be made.
std::vector<Delivery> Outbox::claimDue(std::span<const HostPlaces> hosts, Millis lease) {
  for (;;) {
    std::vector<Due> due = readers_.read([&](Connection& connection) {
      const Snapshot snapshot(connection);
      std::vector<Due> found = findDue(connection, clock_.now(), hosts);
      std::size_t bytes = 0;
      for (auto each = found.begin(); each != found.end(); ++each) {
        if (bytes >= kMaxClaimedBytes) {
          found.erase(each, found.end());
          break;
        }
        readRow(connection, *each);
        bytes += each->bytes();
      }
      return found;
    });
    if (due.empty()) return {};
    for (Due& each : due) readFiles(files_, each);
    const auto rows = writer_.write([&](Step& step) {
      std::vector<std::optional<Delivery>> claimed;
      claimed.reserve(due.size());
      for (const Due& each : due) {
        if (!each.damage.empty()) giveUp(step, each);
        if (each.pause > Millis(0)) postpone(step, each);
        const bool isReadable = each.damage.empty() && each.pause == Millis(0);
        claimed.push_back(isReadable ? claimNow(step, each, lease) : std::nullopt);
      }
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

bool Outbox::finishDelivery(const DeliveryClaim& claim, DeliveryState state) {
  if (state == DeliveryState::owed) return false;
  return writer_.write([&](Step& step) {
    EndpointId endpoint;
    {
      Query query = step.db.query("SELECT endpoint FROM delivery WHERE id = ?1 AND state = 0 AND claims = ?2");
      if (!query.bind(claim.id, claim.number).next()) return hasEnded(step, claim, state);
      endpoint = query.text(0);
    }
    step.db.query("UPDATE delivery SET state = ?2, settled_at = ?3 WHERE id = ?1")
        .bind(claim.id, static_cast<int>(state), step.now)
        .run();
    step.counters.owes(endpoint, -1);
    dropOldest(step, endpoint, kMostDropped);
    return true;
  });
}

bool Outbox::reschedule(const DeliveryClaim& claim, Millis delay) {
  return writer_.write([&](Step& step) {
    return step.db.query("UPDATE delivery SET due_at = ?3 WHERE id = ?1 AND state = 0 AND claims = ?2")
               .bind(claim.id, claim.number, step.now + delay)
               .change() == 1;
  });
}

bool Outbox::recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) {
  return writer_.write([&](Step& step) {
    std::int64_t num = 0;
    {
      Query query = step.db.query("SELECT num, tries FROM delivery WHERE id = ?1 AND state = 0 AND claims = ?2");
      if (!query.bind(claim.id, claim.number).next()) return false;
      num = query.integer(0);
      const std::uint32_t tries = query.number(1);
      // A repeated call finds its number as the last number.
      if (number != tries + 1) return number > 0 && number == tries;
    }
    step.db.query("UPDATE delivery SET tries = tries + 1 WHERE num = ?1").bind(num).run();
    addAttempt(step, num, attempt);
    return true;
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
    EndpointId endpoint;
    bool wasOwed = false;
    {
      Query query =
          step.db.query("SELECT endpoint, state = 0 FROM delivery WHERE id = ?1 AND ifnull(settled_at > ?2, 1)");
      if (!query.bind(id, step.now - kDeliveryRecordLife).next()) return false;
      endpoint = query.text(0);
      wasOwed = query.flag(1);
    }
    step.db
        .query(
            "UPDATE delivery SET state = 0, due_at = ?2, owed_at = ?2, settled_at = NULL, tries = 0, "
            "claims = claims + 1 WHERE id = ?1")
        .bind(id, step.now)
        .run();
    if (!wasOwed) step.counters.owes(endpoint, 1);
    return true;
  });
}

}  // namespace jobq::sqlite

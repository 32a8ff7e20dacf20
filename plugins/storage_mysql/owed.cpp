// Number, age and bounds of owed deliveries. The costs are independent of the number of deliveries.
#include <algorithm>
#include <optional>

#include "delivery_rows.h"
#include "outbox.h"
#include "writes/counters.h"

namespace jobq::mysql {
namespace {

/// The part of an owed delivery needed to apply the bounds.
struct OwedRow {
  std::int64_t num = 0;
  Instant owedAt{};
  bool waits = false;  // the delivery is due, and there was no try yet or the last try failed
};

bool exceeds(std::int64_t owed, const OwedBounds& bounds) {
  return owed > 0 && static_cast<std::uint64_t>(owed) > bounds.maxCount;
}

std::optional<Instant> oldestOwedAt(Connection& connection, std::string_view endpoint) {
  Query query = connection.query(
      "SELECT owed_at FROM delivery FORCE INDEX (delivery_owed) WHERE endpoint = ? AND state = 0 "
      "ORDER BY owed_at LIMIT 1");
  if (!query.bind(endpoint).next()) return std::nullopt;
  return query.instant(0);
}

/// Locks the deliveries that are owed longest. A delivery that another transaction is about to end is awaited, so a
/// repeated call counts what the call before has left.
std::vector<OwedRow> lockOldestOwed(Step& step, std::string_view endpoint, std::size_t max) {
  Query query = step.db.query(
      "SELECT num, owed_at, due_at <= ? AND (tries = 0 OR (SELECT reason FROM delivery_attempt AS a "
      "WHERE a.num = delivery.num ORDER BY id DESC LIMIT 1) <> '') "
      "FROM delivery FORCE INDEX (delivery_owed) WHERE endpoint = ? AND state = 0 ORDER BY owed_at, num LIMIT ? "
      "FOR UPDATE");
  query.bind(step.now, endpoint, max);
  std::vector<OwedRow> rows;
  while (query.next()) rows.push_back({query.integer(0), query.instant(1), query.flag(2)});
  return rows;
}

void abandon(Step& step, std::int64_t num, std::string reason) {
  step.db.query("UPDATE delivery SET state = ?, settled_at = ? WHERE num = ?")
      .bind(static_cast<int>(DeliveryState::abandoned), step.now, num)
      .run();
  addAttempt(step, num, {{}, 0, Millis(0), std::move(reason), {}});
}

/// An endpoint, of which at most `looks` deliveries are read.
struct Backlog {
  const EndpointId& endpoint;
  std::size_t looks = 0;
};

/// Abandons up to `max` deliveries of the endpoint.
AbandonedDeliveries abandonOf(Step& step, const Backlog& backlog, const OwedBounds& bounds, std::size_t max) {
  AbandonedDeliveries done{backlog.endpoint, 0, 0};
  const std::vector<OwedRow> rows = lockOldestOwed(step, backlog.endpoint, backlog.looks);
  const std::int64_t owed = readTally(step.db, backlog.endpoint).owed + step.counters.of(backlog.endpoint).owed;
  for (const OwedRow& row : rows) {
    const std::size_t abandoned = done.tooOld + done.tooMany;
    const bool isTooOld = row.owedAt + bounds.maxAge <= step.now;
    const bool areTooMany = exceeds(owed - static_cast<std::int64_t>(abandoned), bounds);
    if (abandoned == max || (!isTooOld && !areTooMany)) break;
    if (!row.waits) continue;
    ++(isTooOld ? done.tooOld : done.tooMany);
    abandon(step, row.num, isTooOld ? tooOldReason(bounds) : tooManyReason(bounds));
  }
  return done;
}

}  // namespace

OwedDeliveries Outbox::owed(std::string_view endpoint) {
  return readers_.read([&](Connection& connection) -> OwedDeliveries {
    const Snapshot snapshot(connection);
    const std::int64_t count = readTally(connection, endpoint).owed;
    const auto oldest = oldestOwedAt(connection, endpoint);
    if (count <= 0 || !oldest) return {};
    return {static_cast<std::uint64_t>(count), std::max(clock_.now() - *oldest, Millis(0))};
  });
}

// Most calls find no work: the writer is not involved then.
AbandonResult Outbox::abandonOwed(const OwedBounds& bounds, std::size_t max) {
  if (!glances_.read(kOldGlance).owesWebhooks) return {};
  const auto endpoints = readers_.read([&](Connection& connection) {
    const auto isWithin = [&](const EndpointId& endpoint) {
      if (exceeds(readTally(connection, endpoint).owed, bounds)) return false;
      const auto oldest = oldestOwedAt(connection, endpoint);
      return !oldest || *oldest + bounds.maxAge > clock_.now();
    };
    std::vector<EndpointId> owing = endpointsOwing(connection);
    std::erase_if(owing, isWithin);
    return owing;
  });
  if (endpoints.empty()) return {};
  return writer_.write([&](Step& step) {
    AbandonResult result;
    std::size_t left = max;
    for (const EndpointId& endpoint : endpoints) {
      if (left == 0) break;
      const AbandonedDeliveries done = abandonOf(step, {endpoint, max}, bounds, left);
      const std::size_t count = done.tooOld + done.tooMany;
      if (count == 0) continue;
      left -= count;
      step.counters.owes(endpoint, -static_cast<std::int64_t>(count));
      step.counters.settled(endpoint, static_cast<std::int64_t>(count));
      dropOldest(step, endpoint, count);
      result.endpoints.push_back(done);
    }
    result.more = left == 0;
    return result;
  });
}

}  // namespace jobq::mysql

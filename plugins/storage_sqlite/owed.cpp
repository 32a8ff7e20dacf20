// The bounds on owed webhooks of an endpoint. The counters know the number, the front of an index knows the age: both
// costs are independent of the number of deliveries.
#include <algorithm>
#include <optional>

#include "delivery_rows.h"
#include "outbox.h"

namespace jobq::sqlite {
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
      "SELECT owed_at FROM delivery INDEXED BY delivery_owed WHERE state = 0 AND endpoint = ?1 "
      "ORDER BY owed_at LIMIT 1");
  if (!query.bind(endpoint).next()) return std::nullopt;
  return query.instant(0);
}

std::vector<OwedRow> oldestOwed(Step& step, std::string_view endpoint, std::size_t max) {
  Query query = step.db.query(
      "SELECT num, owed_at, due_at <= ?2 AND (tries = 0 OR (SELECT reason FROM delivery_attempt AS a "
      "WHERE a.num = delivery.num ORDER BY id DESC LIMIT 1) <> '') "
      "FROM delivery INDEXED BY delivery_owed WHERE state = 0 AND endpoint = ?1 ORDER BY owed_at, num LIMIT ?3");
  query.bind(endpoint, step.now, max);
  std::vector<OwedRow> rows;
  while (query.next()) rows.push_back({query.integer(0), query.instant(1), query.flag(2)});
  return rows;
}

void abandon(Step& step, std::int64_t num, std::string reason) {
  step.db.query("UPDATE delivery SET state = ?2, settled_at = ?3 WHERE num = ?1")
      .bind(num, static_cast<int>(DeliveryState::abandoned), step.now)
      .run();
  addAttempt(step, num, {{}, 0, Millis(0), std::move(reason), {}});
}

/// An endpoint with `owed` owed deliveries; at most `looks` are read.
struct Backlog {
  const EndpointId& endpoint;
  std::int64_t owed = 0;
  std::size_t looks = 0;
};

/// Abandons up to `max` deliveries of the endpoint.
AbandonedDeliveries abandonOf(Step& step, const Backlog& backlog, const OwedBounds& bounds, std::size_t max) {
  AbandonedDeliveries done{backlog.endpoint, 0, 0};
  for (const OwedRow& row : oldestOwed(step, backlog.endpoint, backlog.looks)) {
    const std::size_t abandoned = done.tooOld + done.tooMany;
    const bool isTooOld = row.owedAt + bounds.maxAge <= step.now;
    const bool areTooMany = exceeds(backlog.owed - static_cast<std::int64_t>(abandoned), bounds);
    if (abandoned == max || (!isTooOld && !areTooMany)) break;
    if (!row.waits) continue;
    ++(isTooOld ? done.tooOld : done.tooMany);
    abandon(step, row.num, isTooOld ? tooOldReason(bounds) : tooManyReason(bounds));
  }
  return done;
}

}  // namespace

OwedDeliveries Outbox::owed(std::string_view endpoint) {
  const std::int64_t count = counters_.of(endpoint).owed;
  if (count <= 0) return {};
  const auto oldest = readers_.read([&](Connection& connection) { return oldestOwedAt(connection, endpoint); });
  if (!oldest) return {};  // settled meanwhile
  return {static_cast<std::uint64_t>(count), std::max(clock_.now() - *oldest, Millis(0))};
}

// Most calls find no work: the writer is not involved then.
AbandonResult Outbox::abandonOwed(const OwedBounds& bounds, std::size_t max) {
  std::vector<std::string> endpoints = counters_.owing();
  const auto isWithin = [&](Connection& connection, const std::string& endpoint) {
    if (exceeds(counters_.of(endpoint).owed, bounds)) return false;
    const auto oldest = oldestOwedAt(connection, endpoint);
    return !oldest || *oldest + bounds.maxAge > clock_.now();
  };
  if (!endpoints.empty()) {
    readers_.read([&](Connection& connection) {
      return std::erase_if(endpoints, [&](const std::string& each) { return isWithin(connection, each); });
    });
  }
  if (endpoints.empty()) return {};
  return writer_.write([&](Step& step) {
    AbandonResult result;
    std::size_t left = max;
    for (const std::string& endpoint : endpoints) {
      if (left == 0) break;
      const std::int64_t owed = counters_.of(endpoint).owed + step.counters.of(endpoint).owed;
      const AbandonedDeliveries done = abandonOf(step, {endpoint, owed, max}, bounds, left);
      const std::size_t count = done.tooOld + done.tooMany;
      if (count == 0) continue;
      left -= count;
      step.counters.owes(endpoint, -static_cast<std::int64_t>(count));
      dropOldest(step, endpoint, count);
      result.endpoints.push_back(done);
    }
    result.more = left == 0;
    return result;
  });
}

}  // namespace jobq::sqlite

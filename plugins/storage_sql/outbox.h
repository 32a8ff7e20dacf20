// The store of owed webhooks. Contract: `sdk/include/jobq/outbox_store.h`. The rows are written by `job_rows.cpp` of a
// storage, in the step that ends a job.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"
#include "storage_sql/rows.h"

namespace jobq::sql {

/// Most old deliveries deleted when a delivery is settled. The usual number is 1; a larger backlog is worked off by
/// later deliveries.
inline constexpr std::size_t kMostDropped = 16;

/// An owed and due delivery, with the parts needed for a call beside the row. Bodies never change and may have 20 MB
/// each, so a read connection reads the bodies, not the writer.
struct Due {
  std::size_t turn = 0;  // position among the deliveries of the same host
  Instant at{};
  std::int64_t num = 0;
  std::string output;
  std::string input;

  std::size_t bytes() const { return output.size() + input.size(); }
};

/// A host with owed deliveries, and the moment when its first delivery is due.
struct OwedHost {
  std::string host;
  Instant firstDue{};
};

/// The part of an owed delivery needed to apply the bounds.
struct OwedRow {
  std::int64_t num = 0;
  Instant owedAt{};
  bool waits = false;  // the delivery is due, and there was no try yet or the last try failed
};

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

inline bool exceeds(std::int64_t owed, const OwedBounds& bounds) {
  return owed > 0 && static_cast<std::uint64_t>(owed) > bounds.maxCount;
}

/// The store of owed webhooks, over the statements of a storage: `Rows` is the OutboxRows of the storage, and
/// addAttempt() and dropOldest() are functions of `delivery_rows.h`. Any thread may call the methods.
template <class Rows>
class Outbox final : public OutboxStore {
 public:
  explicit Outbox(const Rows& rows) : rows_(rows) {}

  DueHosts dueHosts(std::string_view after, std::size_t max) override {
    if (!rows_.mayOwe()) return {};
    return rows_.readers.read([&](auto& connection) {
      const Instant now = rows_.clock.now();
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

  // A read connection does the reading, and the writer gets only the rows to change. A second caller may have claimed
  // or settled the rows in between, and then the call looks for others.
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) override {
    for (;;) {
      std::vector<DueRow> due = rows_.readers.read([&](auto& connection) { return readDue(connection, hosts); });
      if (due.empty()) return {};
      rows_.readFiles(due);
      auto rows = rows_.writer.write([&](auto& step) {
        std::vector<std::optional<Delivery>> claimed;
        claimed.reserve(due.size());
        for (const DueRow& each : due) claimed.push_back(claimNow(step, each, lease));
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

  bool finishDelivery(const DeliveryClaim& claim, DeliveryState state) override {
    if (state == DeliveryState::owed) return false;
    return rows_.writer.write([&](auto& step) {
      const auto row = lockDelivery(step, claim.id);
      if (!row || row->claims != claim.number || !row->isListed) return false;
      if (row->state != DeliveryState::owed) return row->state == state;  // the call is repeated
      step.db.query(Rows::kSettle).bind(static_cast<int>(state), step.now, row->num).run();
      rows_.countSettled(step, row->endpoint, 1);
      dropOldest(step, row->endpoint, kMostDropped);
      return true;
    });
  }

  bool reschedule(const DeliveryClaim& claim, Millis delay) override {
    return rows_.writer.write([&](auto& step) {
      return step.db.query(Rows::kReschedule).bind(step.now + delay, claim.id, claim.number).run() == 1;
    });
  }

  bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) override {
    return rows_.writer.write([&](auto& step) {
      const auto row = lockDelivery(step, claim.id);
      if (!row || !row->isOwedUnder(claim)) return false;
      // A repeated call finds its number as the last number.
      if (number != row->tries + 1) return number > 0 && number == row->tries;
      step.db.query(Rows::kCountTry).bind(row->num).run();
      addAttempt(step, row->num, attempt);
      return true;
    });
  }

  std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit,
                             std::optional<DeliveryState> state) override {
    return rows_.readers.read([&](auto& connection) {
      const typename Rows::Snapshot snapshot(connection);
      const Instant oldest = rows_.clock.now() - kDeliveryRecordLife;
      const bool ofState = job.empty() && state;
      auto query = connection.query(ofState ? Rows::kListOfState : job.empty() ? Rows::kList : Rows::kListOfJob);
      if (ofState) {
        query.bind(endpoint, static_cast<int>(*state), oldest, limit);
      } else {
        query.bind(endpoint, job, oldest, limit);
      }
      std::vector<Delivery> listed;
      while (query.next()) {
        NumberedDelivery numbered = deliveryOf(query);
        numbered.delivery.job.error = listedError(numbered.delivery.job.error);
        readAttempts(connection, numbered, !job.empty());
        listed.push_back(std::move(numbered.delivery));
      }
      return listed;
    });
  }

  bool replay(std::string_view id) override {
    return rows_.writer.write([&](auto& step) {
      const auto row = lockDelivery(step, id);
      if (!row || !row->isListed) return false;
      step.db.query(Rows::kReplay).bind(step.now, step.now, row->num).run();
      if (row->state != DeliveryState::owed) rows_.countSettled(step, row->endpoint, -1);
      return true;
    });
  }

  OwedDeliveries owed(std::string_view endpoint) override {
    return rows_.readers.read([&](auto& connection) -> OwedDeliveries {
      const typename Rows::Snapshot snapshot(connection);
      const std::int64_t count = rows_.owed(connection, endpoint);
      if (count <= 0) return {};
      const auto oldest = oldestOwedAt(connection, endpoint);
      if (!oldest) return {};  // settled meanwhile
      return {static_cast<std::uint64_t>(count), std::max(rows_.clock.now() - *oldest, Millis(0))};
    });
  }

  // Most calls find no work: the writer is not involved then.
  AbandonResult abandonOwed(const OwedBounds& bounds, std::size_t max) override {
    std::vector<EndpointId> endpoints = rows_.owing();
    if (endpoints.empty()) return {};
    rows_.readers.read([&](auto& connection) {
      return std::erase_if(endpoints, [&](const EndpointId& each) { return isWithin(connection, each, bounds); });
    });
    if (endpoints.empty()) return {};
    return rows_.writer.write([&](auto& step) {
      AbandonResult result;
      std::size_t left = max;
      for (const EndpointId& endpoint : endpoints) {
        if (left == 0) break;
        const AbandonedDeliveries done = abandonOf(step, {endpoint, max}, bounds, left);
        const std::size_t count = done.tooOld + done.tooMany;
        if (count == 0) continue;
        left -= count;
        rows_.countSettled(step, endpoint, static_cast<std::int64_t>(count));
        dropOldest(step, endpoint, count);
        result.endpoints.push_back(done);
      }
      result.more = left == 0;
      return result;
    });
  }

 private:
  using DueRow = typename Rows::Due;

  /// An endpoint, of which at most `looks` deliveries are read.
  struct Backlog {
    const EndpointId& endpoint;
    std::size_t looks = 0;
  };

  /// Returns the first host after `after` in the order of names, if any.
  template <class Connection>
  std::optional<OwedHost> nextHost(Connection& connection, std::string_view after) const {
    auto query = connection.query(Rows::kNextHost);
    if (!query.bind(after).next()) return std::nullopt;
    return OwedHost{query.text(0), query.instant(1)};
  }

  /// Returns the due deliveries with their bodies, up to kMaxClaimedBytes, one of each host in turn.
  template <class Connection>
  std::vector<DueRow> readDue(Connection& connection, std::span<const HostPlaces> hosts) const {
    const typename Rows::Snapshot snapshot(connection);
    const Instant now = rows_.clock.now();
    std::vector<DueRow> due;
    for (const HostPlaces& host : hosts) {
      auto query = connection.query(Rows::kDueOfHost);
      query.bind(host.host, now, host.places);
      for (std::size_t turn = 0; query.next(); ++turn) {
        DueRow& row = due.emplace_back();
        row.turn = turn;
        row.at = query.instant(0);
        row.num = query.integer(1);
      }
    }
    std::ranges::sort(due, {}, [](const DueRow& row) { return std::tie(row.turn, row.at, row.num); });
    std::size_t bytes = 0;
    for (auto each = due.begin(); each != due.end(); ++each) {
      if (bytes >= kMaxClaimedBytes) {
        due.erase(each, due.end());
        break;
      }
      rows_.readBodies(connection, *each);
      bytes += each->bytes();
    }
    return due;
  }

  template <class Connection>
  void readAttempts(Connection& connection, NumberedDelivery& numbered, bool withReplies) const {
    auto query = connection.query(Rows::kAttempts);
    query.bind(withReplies, numbered.num);
    while (query.next()) numbered.delivery.attempts.push_back(attemptOf(query));
  }

  /// Returns the claimed delivery without its bodies, or no value if a second caller was faster.
  template <class Step>
  std::optional<Delivery> claimNow(Step& step, const DueRow& due, Millis lease) const {
    NumberedDelivery numbered;
    {
      auto query = step.db.query(Rows::kLockDue);
      if (!query.bind(due.num, step.now).next()) return std::nullopt;
      numbered = deliveryOf(query);
    }
    Delivery& delivery = numbered.delivery;
    if (!rows_.isReadable(step, due, delivery)) return std::nullopt;
    delivery.dueAt = step.now + lease;
    ++delivery.claims;
    step.db.query(Rows::kClaim).bind(delivery.dueAt, delivery.claims, due.num).run();
    readAttempts(step.db, numbered, true);
    return std::move(delivery);
  }

  template <class Step>
  std::optional<ReportedRow> lockDelivery(Step& step, std::string_view id) const {
    auto query = step.db.query(Rows::kLockDelivery);
    if (!query.bind(step.now - kDeliveryRecordLife, id).next()) return std::nullopt;
    return ReportedRow{query.integer(0), query.text(1),   static_cast<DeliveryState>(query.integer(2)),
                       query.count(3),   query.number(4), query.flag(5)};
  }

  template <class Connection>
  std::optional<Instant> oldestOwedAt(Connection& connection, std::string_view endpoint) const {
    auto query = connection.query(Rows::kOldestOwedAt);
    if (!query.bind(endpoint).next()) return std::nullopt;
    return query.instant(0);
  }

  template <class Connection>
  bool isWithin(Connection& connection, const EndpointId& endpoint, const OwedBounds& bounds) const {
    if (exceeds(rows_.owed(connection, endpoint), bounds)) return false;
    const auto oldest = oldestOwedAt(connection, endpoint);
    return !oldest || *oldest + bounds.maxAge > rows_.clock.now();
  }

  /// Abandons up to `max` deliveries of the endpoint. The deliveries are locked first, so a repeated call counts what
  /// the call before has left.
  template <class Step>
  AbandonedDeliveries abandonOf(Step& step, const Backlog& backlog, const OwedBounds& bounds, std::size_t max) const {
    std::vector<OwedRow> rows;
    {
      auto query = step.db.query(Rows::kLockOldestOwed);
      query.bind(step.now, backlog.endpoint, backlog.looks);
      while (query.next()) rows.push_back({query.integer(0), query.instant(1), query.flag(2)});
    }
    AbandonedDeliveries done{backlog.endpoint, 0, 0};
    const std::int64_t owed = rows_.owed(step.db, backlog.endpoint) + step.counters.of(backlog.endpoint).owed;
    for (const OwedRow& row : rows) {
      const std::size_t abandoned = done.tooOld + done.tooMany;
      const bool isTooOld = row.owedAt + bounds.maxAge <= step.now;
      const bool areTooMany = exceeds(owed - static_cast<std::int64_t>(abandoned), bounds);
      if (abandoned == max || (!isTooOld && !areTooMany)) break;
      if (!row.waits) continue;
      ++(isTooOld ? done.tooOld : done.tooMany);
      step.db.query(Rows::kSettle).bind(static_cast<int>(DeliveryState::abandoned), step.now, row.num).run();
      addAttempt(step, row.num, {{}, 0, Millis(0), isTooOld ? tooOldReason(bounds) : tooManyReason(bounds), {}});
    }
    return done;
  }

  const Rows rows_;
};

}  // namespace jobq::sql

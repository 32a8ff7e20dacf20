#include "nodes.h"

#include "former_claims.h"
#include "jobq/planned.h"

namespace jobq::sqlite {
namespace {

constexpr Millis kNodeMemory{86'400'000};

void addWorkers(Step& step, std::string_view node, const EndpointWorkers& at) {
  const WorkerCounts& workers = at.workers;
  step.db
      .query(
          "INSERT INTO node_worker (node, endpoint, idle, initializing, ready, running, throttled, unhealthy) "
          "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (endpoint, node) DO UPDATE SET "
          "idle = idle + excluded.idle, initializing = initializing + excluded.initializing, "
          "ready = ready + excluded.ready, running = running + excluded.running, "
          "throttled = throttled + excluded.throttled, unhealthy = unhealthy + excluded.unhealthy")
      .bind(node, at.endpoint, workers.idle, workers.initializing, workers.ready, workers.running, workers.throttled,
            workers.unhealthy)
      .run();
}

/// Returns the epoch of the life that has not ended, or 0.
std::uint64_t presentLife(Connection& connection) {
  Query query = connection.query("SELECT value FROM number WHERE name = 'life'");
  return query.next() ? static_cast<std::uint64_t>(query.integer(0)) : 0;
}

/// Ends the present life and begins the life `epoch`; 0 for none.
void changeLife(Step& step, std::uint64_t epoch) {
  loseFormerClaims(step);
  step.db.query("DELETE FROM node_worker").run();
  step.db.query("UPDATE number SET value = ?1 WHERE name = 'life'").bind(epoch).run();
}

}  // namespace

Holder Nodes::join(std::string_view name, const std::optional<JobKey>& culprit) {
  refusePlanned(culprit);
  const std::uint64_t epoch = writer_.write([&](Step& step) {
    Query counter = step.db.query("UPDATE number SET value = value + 1 WHERE name = 'epoch' RETURNING value");
    const std::uint64_t next = counter.next() ? static_cast<std::uint64_t>(counter.integer(0)) : 0;
    changeLife(step, next);
    step.db.query("DELETE FROM node WHERE last_beat <= ?1").bind(step.now - kNodeMemory).run();
    step.db.query("INSERT OR REPLACE INTO node (name, last_beat, epoch) VALUES (?1, ?2, ?3)")
        .bind(name, step.now, next)
        .run();
    return next;
  });
  return {std::string(name), epoch};
}

BeatResult Nodes::beat(const Holder& holder, std::span<const EndpointWorkers> workers) {
  return writer_.writeUnsynced([&](Step& step) {
    if (holder.epoch == 0 || presentLife(step.db) != holder.epoch) {
      Query later = step.db.query("SELECT 1 FROM node WHERE name = ?1 AND epoch > ?2");
      return later.bind(holder.node, holder.epoch).next() ? BeatResult::replaced : BeatResult::ended;
    }
    step.db.query("UPDATE node SET last_beat = ?2 WHERE name = ?1").bind(holder.node, step.now).run();
    step.db.query("DELETE FROM node_worker WHERE node = ?1").bind(holder.node).run();
    for (const EndpointWorkers& at : workers) addWorkers(step, holder.node, at);
    return BeatResult::extended;
  });
}

void Nodes::leave(const Holder& holder) {
  writer_.write([&](Step& step) {
    if (holder.epoch != 0 && presentLife(step.db) == holder.epoch) changeLife(step, 0);
    return true;
  });
}

WorkerCounts Nodes::count(std::string_view endpoint, std::string_view exceptNode) {
  return readers_.read([&](Connection& connection) {
    Query query = connection.query(
        "SELECT idle, initializing, ready, running, throttled, unhealthy FROM node_worker "
        "WHERE endpoint = ?1 AND node <> ?2");
    query.bind(endpoint, exceptNode);
    WorkerCounts sum;
    while (query.next()) {
      sum += {query.number(0), query.number(1), query.number(2), query.number(3), query.number(4), query.number(5)};
    }
    return sum;
  });
}

std::vector<NodeInfo> Nodes::nodes() {
  return readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    const Instant now = clock_.now();
    const std::uint64_t life = presentLife(connection);
    Query query =
        connection.query("SELECT name, epoch, last_beat FROM node WHERE last_beat > ?1 OR epoch = ?2 ORDER BY name");
    query.bind(now - kNodeMemory, life);
    std::vector<NodeInfo> nodes;
    while (query.next()) {
      const auto epoch = static_cast<std::uint64_t>(query.integer(1));
      nodes.push_back({query.text(0), epoch, now - query.instant(2), epoch == life});
    }
    return nodes;
  });
}

}  // namespace jobq::sqlite

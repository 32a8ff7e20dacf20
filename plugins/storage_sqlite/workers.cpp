#include "workers.h"

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

}  // namespace

void Workers::beat(std::string_view node, std::span<const EndpointWorkers> workers) {
  writer_.write([&](Step& step) {
    step.db.query("INSERT OR REPLACE INTO node (name, last_beat) VALUES (?1, ?2)").bind(node, step.now).run();
    step.db.query("DELETE FROM node_worker WHERE node = ?1").bind(node).run();
    for (const EndpointWorkers& at : workers) addWorkers(step, node, at);
    return true;
  });
}

WorkerCounts Workers::count(std::string_view endpoint, std::string_view exceptNode) {
  return readers_.read([&](Connection& connection) {
    Query query = connection.query(
        "SELECT idle, initializing, ready, running, throttled, unhealthy FROM node_worker JOIN node ON name = node "
        "WHERE endpoint = ?1 AND node <> ?2 AND last_beat > ?3");
    query.bind(endpoint, exceptNode, clock_.now() - kBeatLife);
    WorkerCounts sum;
    while (query.next()) {
      sum += {query.number(0), query.number(1), query.number(2), query.number(3), query.number(4), query.number(5)};
    }
    return sum;
  });
}

std::vector<NodeInfo> Workers::nodes() {
  return readers_.read([&](Connection& connection) {
    const Instant now = clock_.now();
    Query query = connection.query("SELECT name, last_beat FROM node WHERE last_beat > ?1 ORDER BY name");
    query.bind(now - kNodeMemory);
    std::vector<NodeInfo> nodes;
    while (query.next()) {
      nodes.push_back({query.text(0), query.instant(1), query.instant(1) > now - kBeatLife});
    }
    return nodes;
  });
}

}  // namespace jobq::sqlite

#include "lives.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "jobq/node_store.h"

namespace jobq::mysql {
namespace {

/// Locks the node and releases the node at once. The request may be part of a deadlock, because later claims wait
/// behind the request; it is then repeated.
void lockForAMoment(Connection& connection, std::string_view name) {
  constexpr int kAttempts = 200;
  for (int attempt = 1;; ++attempt) {
    try {
      connection.query("SELECT epoch FROM node WHERE name = ? FOR UPDATE").bind(name).next();
      return;
    } catch (const MysqlError& error) {
      if (!error.isConflict() || attempt == kAttempts) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(attempt, 20)));
  }
}

}  // namespace

std::optional<LifeRow> lockNode(Step& step, std::string_view name) {
  Query query = step.db.query("SELECT epoch, alive FROM node WHERE name = ? FOR UPDATE");
  if (!query.bind(name).next()) return std::nullopt;
  return LifeRow{query.count(0), query.flag(1)};
}

// MariaDB knows no FOR SHARE.
bool shareLife(Step& step, const Holder& holder) {
  Query query = step.db.query("SELECT alive FROM node WHERE name = ? AND epoch = ? LOCK IN SHARE MODE");
  return query.bind(holder.node, holder.epoch).next() && query.flag(0);
}

// Each statement is a transaction that holds a single lock. A life that ends meanwhile has waited for its claims.
void awaitClaims(Connection& connection) {
  std::vector<std::string> names;
  {
    Query query = connection.query("SELECT name FROM node WHERE alive = 1");
    while (query.next()) names.push_back(query.text(0));
  }
  for (const std::string& name : names) lockForAMoment(connection, name);
}

void endLife(Step& step, std::uint64_t epoch) {
  step.db.query("UPDATE node SET alive = 0 WHERE epoch = ?").bind(epoch).run();
  step.db.query("DELETE FROM node_worker WHERE epoch = ?").bind(epoch).run();
  step.db.query("INSERT IGNORE INTO ended_life (epoch) VALUES (?)").bind(epoch).run();
}

std::optional<Instant> lastBeat(Step& step) {
  Query query = step.db.query("SELECT MAX(last_beat) FROM node");
  if (!query.next() || query.null(0)) return std::nullopt;
  return query.instant(0);
}

void endSilentLives(Step& step) {
  const std::optional<Instant> last = lastBeat(step);
  if (!last || step.now - *last > kBeatGap) return;
  std::vector<std::uint64_t> epochs;
  {
    Query query = step.db.query("SELECT epoch FROM node WHERE alive = 1 AND life_end <= ? ORDER BY name FOR UPDATE");
    query.bind(step.now);
    while (query.next()) epochs.push_back(query.count(0));
  }
  for (const std::uint64_t epoch : epochs) endLife(step, epoch);
}

}  // namespace jobq::mysql

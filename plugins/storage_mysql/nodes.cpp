#include "nodes.h"

#include <algorithm>
#include <functional>
#include <map>

#include "jobq/planned.h"
#include "lives.h"

namespace jobq::mysql {
namespace {

constexpr Millis kNodeMemory{86'400'000};

/// Two tries of a beat take 7 s on a dead network (kNodeAnswerTime, and the time to connect).
constexpr std::chrono::seconds kSilence{6};

using Report = std::map<EndpointId, WorkerCounts, std::less<>>;

WorkerCounts countsOf(const CurrentRow& row, std::size_t first) {
  return {row.number(first),     row.number(first + 1), row.number(first + 2),
          row.number(first + 3), row.number(first + 4), row.number(first + 5)};
}

Report storedReport(Step& step, std::uint64_t epoch) {
  Query query = step.db.query(
      "SELECT endpoint, idle, initializing, ready, running, throttled, unhealthy FROM node_worker WHERE epoch = ?");
  query.bind(epoch);
  Report report;
  while (query.next()) report[query.text(0)] = countsOf(query, 1);
  return report;
}

/// Replaces the report of the life.
void storeReport(Step& step, std::uint64_t epoch, const Report& report) {
  const Report stored = storedReport(step, epoch);
  for (const auto& [endpoint, counts] : stored) {
    if (report.contains(endpoint)) continue;
    step.db.later("DELETE FROM node_worker WHERE epoch = ? AND endpoint = ?").add(epoch, endpoint);
  }
  for (const auto& [endpoint, counts] : report) {
    const auto before = stored.find(endpoint);
    if (before != stored.end() && before->second == counts) continue;
    step.db
        .later(
            "REPLACE INTO node_worker (epoch, endpoint, idle, initializing, ready, running, throttled, unhealthy) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
        .add(epoch, endpoint, counts.idle, counts.initializing, counts.ready, counts.running, counts.throttled,
             counts.unhealthy);
  }
}

/// A time without a beat of any node counts as kBeatGap: the first beat after the gap extends every life.
void extendAllAfterGap(Step& step) {
  const std::optional<Instant> last = lastBeat(step);
  if (!last || step.now - *last <= kBeatGap) return;
  step.db.query("UPDATE node SET life_end = life_end + ? WHERE alive = 1").bind(step.now - *last - kBeatGap).run();
}

std::uint64_t nextEpoch(Step& step) {
  step.db.query("UPDATE counted SET value = value + 1 WHERE name = 'epoch'").run();
  Query query = step.db.query("SELECT value FROM counted WHERE name = 'epoch'");
  if (!query.next()) throw StorageError("the database has lost a row of its table `counted`; restore a backup");
  return query.count(0);
}

}  // namespace

Holder Nodes::join(std::string_view name, const std::optional<JobKey>& culprit) {
  refusePlanned(culprit);
  Holder holder = deps_.writer.write([&](Step& step) {
    const std::uint64_t epoch = nextEpoch(step);
    const auto before = lockNode(step, name);
    if (before) endLife(step, before->epoch);
    extendAllAfterGap(step);
    step.db.query("REPLACE INTO node (name, epoch, alive, last_beat, life_end) VALUES (?, ?, 1, ?, ?)")
        .bind(name, epoch, step.now, step.now + kLeaseLife)
        .run();
    return Holder{std::string(name), epoch};
  });
  noteAnswer();
  return holder;
}

// Most beats report what the beat before reported, and are one statement. The life must have beaten within kBeatGap, so
// that the beat is not the first behind a gap, and the connection must lead to the server that it was opened to: a
// proxy may have moved it. Returns false if the beat needs more than that.
bool Nodes::extendAlone(const Holder& holder, const Report& report) {
  {
    Lock lock(mutex_);
    if (reportedBy_ != holder.epoch || reported_ != report) return false;
  }
  return deps_.ownReader.read([&](Connection& connection) {
    const Instant now = deps_.clock.now();
    Query query = connection.query(
        "UPDATE node SET last_beat = ?, life_end = ? WHERE name = ? AND epoch = ? AND alive = 1 AND last_beat >= ? "
        "AND " JOBQ_MYSQL_SERVER_STATE " = ?");
    query.bind(now, now + kLeaseLife, holder.node, holder.epoch, now - kBeatGap, connection.state());
    if (query.run() == 1) return true;
    connection.checkServer();
    return false;
  });
}

BeatResult Nodes::beat(const Holder& holder, std::span<const EndpointWorkers> workers) {
  Report report;
  for (const EndpointWorkers& at : workers) report[at.endpoint] += at.workers;
  try {
    const BeatResult result = extendLife(holder, std::move(report));
    noteAnswer();
    return result;
  } catch (const MysqlError& error) {
    if (error.isWithoutAnswer()) cutAfterSilence();
    throw;
  }
}

void Nodes::noteAnswer() {
  {
    Lock lock(mutex_);
    answeredAt_ = std::chrono::steady_clock::now();
  }
  deps_.connector.allowConnections();
}

// A reporting handler waits in a call, and a fence would stop the handler only after the end of the call. The node
// fences itself 10 s after the last answer, and another node may run the job 5 s later. A server that opens a
// connection is there: a beat without an answer then waits for a lock, and the other calls need not end.
void Nodes::cutAfterSilence() {
  {
    Lock lock(mutex_);
    const auto heardAt = std::max(answeredAt_, deps_.ownConnector.openedAt());
    if (std::chrono::steady_clock::now() - heardAt < kSilence) return;
  }
  deps_.connector.cutConnections();
}

BeatResult Nodes::extendLife(const Holder& holder, Report report) {
  if (extendAlone(holder, report)) return BeatResult::extended;
  {
    Lock lock(mutex_);
    reportedBy_ = 0;  // the report is unknown until a beat is answered
  }
  const BeatResult result = deps_.writer.write([&](Step& step) {
    const auto life = lockNode(step, holder.node);
    if (life && life->epoch > holder.epoch) return BeatResult::replaced;
    if (!life || life->epoch != holder.epoch || !life->isAlive) return BeatResult::ended;
    extendAllAfterGap(step);
    step.db.query("UPDATE node SET last_beat = ?, life_end = ? WHERE name = ?")
        .bind(step.now, step.now + kLeaseLife, holder.node)
        .run();
    storeReport(step, holder.epoch, report);
    return BeatResult::extended;
  });
  Lock lock(mutex_);
  reportedBy_ = result == BeatResult::extended ? holder.epoch : 0;
  reported_ = std::move(report);
  return result;
}

void Nodes::leave(const Holder& holder) {
  deps_.writer.write([&](Step& step) {
    const auto life = lockNode(step, holder.node);
    if (life && life->epoch == holder.epoch && life->isAlive) endLife(step, holder.epoch);
    return true;
  });
  noteAnswer();  // no beat follows that would end a cut, and the end of the server needs the database
}

WorkerCounts Nodes::count(std::string_view endpoint, std::string_view exceptNode) {
  return deps_.readers.read([&](Connection& connection) {
    Query query = connection.query(
        "SELECT idle, initializing, ready, running, throttled, unhealthy FROM node_worker "
        "JOIN node ON node.epoch = node_worker.epoch "
        "WHERE node_worker.endpoint = ? AND node.name <> ? AND node.alive = 1");
    query.bind(endpoint, exceptNode);
    WorkerCounts sum;
    while (query.next()) sum += countsOf(query, 0);
    return sum;
  });
}

std::vector<NodeInfo> Nodes::nodes() {
  return deps_.readers.read([&](Connection& connection) {
    const Instant now = deps_.clock.now();
    Query query = connection.query(
        "SELECT name, epoch, last_beat, alive FROM node WHERE last_beat > ? OR alive = 1 ORDER BY name");
    query.bind(now - kNodeMemory);
    std::vector<NodeInfo> nodes;
    while (query.next()) nodes.push_back({query.text(0), query.count(1), now - query.instant(2), query.flag(3)});
    return nodes;
  });
}

}  // namespace jobq::mysql

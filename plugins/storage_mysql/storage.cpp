#include "storage.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "connection/probe.h"
#include "lives.h"
#include "schema/schema.h"

namespace jobq::mysql {
namespace {

/// Time for one answer to a beat. Two tries take 7 s on a dead network, and a node fences itself 10 s after its last
/// beat (kLeaseLife - 5 s).
constexpr std::chrono::seconds kNodeAnswerTime{4};

/// The start is refused if the clock of the database is ahead of the host's by more than this time, and the newest row
/// is as old; see checkAge().
constexpr Millis kFarAhead{3'600'000};

/// Time for one statement of a migration, which may copy a large table.
constexpr std::chrono::seconds kMigrationTime{3'600};

/// Returns the later of two moments: the last beat of any node, and the submission or end of the newest job. The
/// optional is empty for a new database.
std::optional<Instant> newestMoment(Connection& connection) {
  Query query = connection.query(
      "SELECT GREATEST(IFNULL((SELECT MAX(last_beat) FROM node), 0), "
      "IFNULL((SELECT GREATEST(submitted_at, IFNULL(finished_at, 0)) FROM job ORDER BY num DESC LIMIT 1), 0))");
  if (!query.next() || query.integer(0) == 0) return std::nullopt;
  return query.instant(0);
}

/// Throws StorageError if the clock of the database is more than kFarAhead `ahead` of the host's, and by the clock of
/// the database the newest row is also older than kFarAhead. The first sweep would then remove results and waiting jobs
/// that have not expired.
void checkAge(std::optional<Instant> newest, Millis ahead, Instant now) {
  if (!newest || ahead <= kFarAhead || now - *newest <= kFarAhead) return;
  throw StorageError(
      "the clock of the database server is " + std::to_string(ahead.count() / 1'000) +
      " s ahead of the clock of this host, and the newest row of the database is " +
      std::to_string((now - *newest).count() / 1'000) +
      " s old by it: jobs and results would be removed as expired; set the clock that is wrong, and start "
      "this node again");
}

/// Checks and prepares the database before any other use.
void prepare(const Connector& connector, const Clock& host, DatabaseClock& clock, JobNumbers& numbers, Log& log) {
  {
    // The first checks and the migration use a separate connection with a longer answer time, which is closed before
    // the other checks.
    const auto patient = Connector(connector.options(), kMigrationTime).open(Isolation::readCommitted);
    enforce(checkServer(*patient, host), log);
    migrate(*patient, connector.options().database, schemaSteps(), log);
  }
  const auto first = connector.open(Isolation::readCommitted);
  // A separate connector does not demand the server of `connector`. The second connection may therefore reach another
  // server, and checkSameServer() sees the difference.
  const auto second = Connector(connector.options()).open(Isolation::readCommitted);
  enforce(std::array{checkSameServer(*first, *second), checkChanges(*first), checkLocks(*first, *second)}, log);
  const Millis ahead = clock.open(*first);
  checkAge(newestMoment(*first), ahead, clock.now());
  numbers.open(*first);
}

/// Prepares the database. The result is always true: it initialises isOpen_, so that the preparation precedes the
/// members that start threads. Throws OutcomeUnknown if the server cannot be reached, because a later attempt may
/// succeed.
bool open(const Connector& connector, const Clock& host, DatabaseClock& clock, JobNumbers& numbers, Log& log) {
  try {
    prepare(connector, host, clock, numbers, log);
    return true;
  } catch (const MysqlError& error) {
    if (error.isUnreachable()) throw OutcomeUnknown(error.what());
    throw;
  }
}

/// Returns the number of connections for changes. With more connections each commit covers fewer changes. With a single
/// connection all changes would wait for one large body or one lock.
std::size_t writersOf(const Options& options) { return std::clamp<std::size_t>(options.pool / 4, 1, 4); }

}  // namespace

MysqlStorage::MysqlStorage(const PluginEnv& env)
    : server_(std::make_shared<ServerInUse>(&env.log)),
      connector_(Options(env.config), kAnswerTime, server_),
      nodeConnector_(Options(env.config), kNodeAnswerTime, server_),
      clock_(env.clock, env.log),
      isOpen_(open(connector_, env.clock, clock_, numbers_, env.log)),
      writer_({connector_, clock_, numbers_, *env.receivers, commits_}, writersOf(connector_.options())),
      nodeWriter_({nodeConnector_, clock_, numbers_, *env.receivers, commits_}, 1),
      // The rest of the pool is at least 1, because `pool` is at least 2.
      readers_(connector_, connector_.options().pool - writersOf(connector_.options())),
      nodeReader_(nodeConnector_, 1),
      jobs_(writer_, readers_, clock_),
      leases_(writer_, readers_, clock_, glances_),
      chunks_({writer_, readers_, clock_}),
      outbox_({writer_, readers_, clock_, glances_}),
      nodes_({nodeWriter_, nodeReader_, readers_, clock_, nodeConnector_, connector_}),
      records_({writer_, readers_, glances_}) {}

std::vector<CheckResult> MysqlStorage::probe(const PluginEnv& env) {
  return mysql::probe(Connector(Options(env.config)), env.clock);
}

std::optional<Millis> MysqlStorage::leaseLife() const noexcept { return kLeaseLife; }

// Only a real write gives a reliable answer: a server may be up, and read-only or without space. Each server of a
// cluster has a separate row in the table `counted`, because checks at two servers would be a conflict otherwise. The
// value of the row is the moment of the check.
void MysqlStorage::check() {
  writer_.write([](Step& step) {
    step.db
        .query(
            "INSERT INTO counted (name, value) VALUES (LEFT(CONCAT('checked ', @@port, ' ', @@hostname), 64), ?) "
            "ON DUPLICATE KEY UPDATE value = VALUES(value)")
        .bind(step.now)
        .run();
    return true;  // write() needs a result, and no caller reads it
  });
}

}  // namespace jobq::mysql

#include "storage.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "lives.h"
#include "probe.h"
#include "schema.h"

namespace jobq::mysql {
namespace {

/// Time for one answer to a beat: a second try has to end before the node fences itself.
constexpr std::chrono::seconds kNodeAnswerTime{4};

/// Time for one statement of a migration, which may copy a large table.
constexpr std::chrono::seconds kMigrationTime{3'600};

/// Checks and prepares the database before any other use.
void prepare(const Connector& connector, const Clock& host, DatabaseClock& clock, JobNumbers& numbers, Log& log) {
  {
    const auto patient = Connector(connector.options(), kMigrationTime).open(Isolation::readCommitted);
    enforce(checkServer(*patient, host), log);
    migrate(*patient, connector.options().database, schemaSteps(), log);
  }
  const auto first = connector.open(Isolation::readCommitted);
  const auto second = Connector(connector.options()).open(Isolation::readCommitted);  // wherever that leads
  enforce(std::array{checkSameServer(*first, *second), checkChanges(*first), checkLocks(*first, *second)}, log);
  clock.measureWhenDue(*first);
  numbers.open(*first);
}

/// Returns true. Throws OutcomeUnknown if the server cannot be reached: a later attempt may succeed.
bool open(const Connector& connector, const Clock& host, DatabaseClock& clock, JobNumbers& numbers, Log& log) {
  try {
    prepare(connector, host, clock, numbers, log);
    return true;
  } catch (const MysqlError& error) {
    if (error.isUnreachable()) throw OutcomeUnknown(error.what());
    throw;
  }
}

/// Number of connections for changes. More of them make the groups of the writer smaller; one alone would let all
/// changes wait for a large body or for a lock.
std::size_t writersOf(const Options& options) { return std::clamp<std::size_t>(options.pool / 4, 1, 4); }

}  // namespace

MysqlStorage::MysqlStorage(const PluginEnv& env)
    : server_(std::make_shared<ServerInUse>(&env.log)),
      connector_(Options(env.config), kAnswerTime, server_),
      nodeConnector_(Options(env.config), kNodeAnswerTime, server_),
      clock_(env.clock),
      isOpen_(open(connector_, env.clock, clock_, numbers_, env.log)),
      writer_({connector_, clock_, numbers_, *env.receivers, commits_}, writersOf(connector_.options())),
      nodeWriter_({nodeConnector_, clock_, numbers_, *env.receivers, commits_}, 1),
      readers_(connector_, connector_.options().pool - writersOf(connector_.options())),
      nodeReader_(nodeConnector_, 1),
      jobs_(writer_, readers_, clock_),
      leases_(writer_, readers_, clock_, glances_),
      chunks_(writer_, readers_, clock_),
      outbox_(writer_, readers_, clock_, glances_),
      nodes_({nodeWriter_, nodeReader_, readers_, clock_, nodeConnector_, connector_}),
      records_(writer_, readers_, glances_) {}

std::vector<CheckResult> MysqlStorage::probe(const PluginEnv& env) {
  return mysql::probe(Connector(Options(env.config)), env.clock);
}

std::optional<Millis> MysqlStorage::leaseLife() const noexcept { return kLeaseLife; }

// Only a real write gives a reliable answer: a server may be up, and read-only or without space. Each server of a
// cluster has a row of its own, because checks at two servers would be a conflict otherwise.
void MysqlStorage::check() {
  writer_.write([](Step& step) {
    step.db
        .query(
            "INSERT INTO counted (name, value) VALUES (LEFT(CONCAT('checked ', @@port, ' ', @@hostname), 64), ?) "
            "ON DUPLICATE KEY UPDATE value = VALUES(value)")
        .bind(step.now)
        .run();
    return true;
  });
}

}  // namespace jobq::mysql
